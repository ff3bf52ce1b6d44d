#include "cli/session_texts.h"

#include <gtest/gtest.h>

#include <string>

namespace modeld {
namespace {

std::string texts_of(const TextUpdate& update) {
  std::string all;
  for (const TextPart& part : update.parts) all += part.name + "=" + part.text + " ";
  return all;
}

TEST(SessionTexts, OnesThatAreThereStayChangedOnesTakeTheirPlaceNewOnesFollow) {
  const TextUpdate update = update_texts({{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"d", "4"}, {"b", "2*"}, {"a", "1"}});
  EXPECT_EQ(texts_of(update), "a=1 b=2* c=3 d=4 ");
  EXPECT_EQ(update.same, 1U);
  EXPECT_EQ(update.changed, 1U);
  EXPECT_EQ(update.added, 1U);
}

TEST(SessionTexts, ANewSessionTakesAllAndNothingNamedChangesNothing) {
  EXPECT_EQ(texts_of(update_texts({}, {{"b", "2"}, {"a", "1"}})), "b=2 a=1 ");
  EXPECT_EQ(texts_of(update_texts({{"a", "1"}}, {})), "a=1 ");
}

TEST(SessionTexts, APinnedTextIsNotTheUnpinnedOneOfItsName) {
  const TextUpdate update = update_texts({{"a", "1"}}, {{"a", "1", SegmentKind::pinned}});
  EXPECT_EQ(update.added, 1U);
}

}  // namespace
}  // namespace modeld
