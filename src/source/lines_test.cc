#include "source/lines.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

namespace modeld {
namespace {

TEST(Lines, CountFromOneAndEndAfterTheirLineEnd) {
  const LineMap map("ab\n\ncd\n");
  EXPECT_EQ(map.lines(), 3);
  EXPECT_EQ(map.line_of(0), 1);
  EXPECT_EQ(map.line_of(2), 1);
  EXPECT_EQ(map.line_of(3), 2);
  EXPECT_EQ(map.line_of(4), 3);
  EXPECT_EQ(map.line_of(6), 3);
  EXPECT_EQ(map.line_of(7), 3);
  EXPECT_EQ(map.line_of(1'000), 3);
  EXPECT_EQ(map.start_of(3), 4U);
}

TEST(Lines, AnEmptyTextHasOneLine) {
  EXPECT_EQ(LineMap("").lines(), 1);
  EXPECT_EQ(LineMap().lines_of(0, 0), (LineRange{1, 1}));
  EXPECT_EQ(LineMap("\n").lines(), 1);
}

TEST(Lines, ARangeDoesNotTouchTheLineBehindItsLastLineEnd) {
  const LineMap map("ab\ncd\nef");
  EXPECT_EQ(map.lines_of(0, 3), (LineRange{1, 1}));
  EXPECT_EQ(map.lines_of(0, 4), (LineRange{1, 2}));
  EXPECT_EQ(map.lines_of(2, 7), (LineRange{1, 3}));
  EXPECT_EQ(map.lines_of(3, 3), (LineRange{2, 2}));
}

RC_GTEST_PROP(LinesProperty, AreOneMoreThanTheLineEndsBefore, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '\n'));
  const LineMap map(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto ends = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n');
    RC_ASSERT(map.line_of(i) == ends + 1);
    RC_ASSERT(map.start_of(map.line_of(i)) <= i);
  }
}

TEST(Lines, TextOfARangeHoldsWholeCharacters) {
  const std::string text = "aé😀z";
  EXPECT_EQ(whole_characters(text, 0, 2), "aé");
  EXPECT_EQ(whole_characters(text, 2, 4), "é😀");
  EXPECT_EQ(whole_characters(text, 1, 3), "é");
  EXPECT_EQ(whole_characters(text, 5, 6), "😀");
  EXPECT_EQ(whole_characters(text, 7, 99), "z");
  EXPECT_EQ(whole_characters(text, 3, 3), "");
  EXPECT_EQ(whole_characters(text, 9, 2), "");
}

}  // namespace
}  // namespace modeld
