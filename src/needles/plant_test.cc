#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "needles/needles.h"

namespace modeld {
namespace {

const std::string kCode =
    "# A module.\n"
    "import os\n"
    "\n"
    "def run(a):\n"
    "    # Adds one.\n"
    "    b = a + 1\n"
    "    c = b + \\\n"
    "        a\n"
    "    return c\n"
    "\n"
    "class Thing:\n"
    "    def go(self):\n"
    "        # Nothing yet.\n"
    "        return None\n";

/// The planted text without what was planted: every line or piece that holds a sentence.
std::string without(const PlantedText& planted, std::string_view original) {
  std::string rest;
  std::size_t from = 0;
  std::size_t kept = 0;
  for (const PlantedNeedle& needle : planted.needles) {
    std::size_t begin = needle.begin;
    // What was written around the sentence is not part of the original text at this spot.
    while (begin > from && original.substr(kept, begin - from) != planted.text.substr(from, begin - from)) --begin;
    rest += planted.text.substr(from, begin - from);
    kept += begin - from;
    from = needle.end;
    if (from < planted.text.size() && (planted.text[from] == '\n' || planted.text[from] == ' ')) ++from;
  }
  return rest + planted.text.substr(from);
}

TEST(Plant, RangesHoldTheSentencesInAscendingOrder) {
  const std::string text = filler_prose(30000, 4);
  const auto needles = make_needles(NeedleKind::single, 20, 9);
  std::vector<double> depths;
  for (std::size_t i = 0; i < needles.size(); ++i) depths.push_back(1.0 - static_cast<double>(i) / 19.0);
  const PlantedText planted = plant(text, needles, depths);
  ASSERT_EQ(planted.needles.size(), needles.size());
  std::size_t last = 0;
  for (const PlantedNeedle& needle : planted.needles) {
    EXPECT_EQ(planted.text.substr(needle.begin, needle.end - needle.begin), needle.needle.sentence);
    EXPECT_GE(needle.begin, last);
    last = needle.end;
  }
  EXPECT_EQ(planted.needles.front().needle.sentence, needles.back().sentence);
}

RC_GTEST_PROP(Plant, NeverLosesOrBreaksTheTextAroundTheNeedle, ()) {
  const std::string text = filler_prose(2000 + *rc::gen::inRange<std::size_t>(0, 3000), *rc::gen::inRange(0U, 99U));
  const auto needles = make_needles(NeedleKind::lookalike, 1, 2);
  const double depth = static_cast<double>(*rc::gen::inRange(0, 1001)) / 1000.0;
  const PlantedText planted = plant(text, needles, std::vector<double>{depth});
  RC_ASSERT(without(planted, text) == text);
  const PlantedNeedle& needle = planted.needles[0];
  const double at = static_cast<double>(needle.begin) / static_cast<double>(planted.text.size());
  RC_ASSERT(std::abs(at - depth) < 0.15);
  // A sentence of its own: what stands before it ends a sentence or a line.
  std::size_t before = needle.begin;
  while (before > 0 && (planted.text[before - 1] == ' ' || planted.text[before - 1] == '"')) --before;
  // RC_ASSERT evaluates both sides of an ||, so the question is answered before.
  const bool ends = before == 0 || std::string_view(".?!\n").find(planted.text[before - 1]) != std::string_view::npos;
  RC_ASSERT(ends);
}

TEST(Plant, WritesACommentLineWithTheFilesOwnSignInCode) {
  const auto needles = make_needles(NeedleKind::single, 1, 2);
  for (double depth = 0.0; depth <= 1.0; depth += 0.05) {
    const PlantedText planted = plant(kCode, needles, std::vector<double>{depth});
    const PlantedNeedle& needle = planted.needles[0];
    const std::size_t begin = planted.text.rfind('\n', needle.begin) + 1;  // npos + 1 == 0
    const std::string line = planted.text.substr(begin, planted.text.find('\n', needle.begin) - begin);
    EXPECT_EQ(line.substr(line.find('#')), "# " + needle.needle.sentence) << depth;
    // The code is untouched, and no continued line was torn from its rest.
    std::string code = planted.text;
    code.erase(begin, line.size() + 1);
    EXPECT_EQ(code, kCode) << depth;
    EXPECT_EQ(planted.text.find("\\\n    #"), std::string::npos);
    EXPECT_EQ(planted.text.find("\\\n        #"), std::string::npos);
  }
}

TEST(Plant, TakesSlashesWhereTheFileCommentsSo) {
  const std::string text = "// One.\nint a = 1;\n// Two.\nint b = 2;\n#include <x>\n";
  const PlantedText planted = plant(text, make_needles(NeedleKind::single, 1, 2), std::vector<double>{0.5});
  EXPECT_EQ(planted.text.substr(planted.needles[0].begin - 3, 3), "// ");
}

TEST(Plant, KeepsWrappedSentencesWhole) {
  const std::string text =
      "In the beginning there was a line\nthat went on over the line end. Then came\nanother one, by Mr. "
      "Smith, who\n"
      "wrote it. The end came\nsoon after.\n";
  for (double depth = 0.0; depth <= 1.0; depth += 0.02) {
    const PlantedText planted = plant(text, make_needles(NeedleKind::single, 1, 2), std::vector<double>{depth});
    std::size_t before = planted.needles[0].begin;
    while (before > 0 && (planted.text[before - 1] == ' ' || planted.text[before - 1] == '\n')) --before;
    EXPECT_TRUE(before == 0 || planted.text[before - 1] == '.') << planted.text;
    EXPECT_EQ(planted.text.find("Mr. The"), std::string::npos) << planted.text;
  }
}

TEST(Plant, AnEmptyTextBecomesTheNeedle) {
  const auto needles = make_needles(NeedleKind::single, 2, 2);
  const PlantedText planted = plant("", needles, std::vector<double>{0.2, 0.8});
  EXPECT_NE(planted.text.find(needles[0].sentence), std::string::npos);
  EXPECT_NE(planted.text.find(needles[1].sentence), std::string::npos);
}

}  // namespace
}  // namespace modeld
