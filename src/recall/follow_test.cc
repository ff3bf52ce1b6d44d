#include "recall/follow.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace modeld {
namespace {

std::vector<std::size_t> follow(const std::vector<std::string>& blocks, std::string_view question,
                                const std::vector<std::size_t>& found, std::size_t max,
                                std::vector<double> drawn = {}) {
  if (drawn.empty()) drawn.assign(blocks.size(), 1.0);
  LexicalIndex index;
  for (const std::string& block : blocks) index.append(block);
  return follow_links(index, [&](std::size_t block) { return blocks.at(block); }, question, found, drawn, max);
}

/// A text in which everything but VAR stands in one block only, or in many.
std::vector<std::string> chain() {
  std::vector<std::string> blocks(12, "And it came to pass that a VAR is set.");
  blocks[9] = "The wind turned. VAR ABC = 17.";
  blocks[2] = "VAR DEF = VAR ABC. The sea was calm.";
  blocks[5] = "The moon rose, and VAR GHI = VAR DEF.";
  return blocks;
}

TEST(FollowLinks, GoesFromTheValueThroughEveryVariable) {
  EXPECT_EQ(follow(chain(), "Which variables are 17?", {9}, 8), (std::vector<std::size_t>{2, 5}));
}

TEST(FollowLinks, StopsAtTheMostThatIsWanted) {
  EXPECT_EQ(follow(chain(), "Which variables are 17?", {9}, 1), (std::vector<std::size_t>{2}));
  EXPECT_TRUE(follow(chain(), "Which variables are 17?", {9}, 0).empty());
}

TEST(FollowLinks, OnlyTheSentenceThatAnsweredLeadsOn) {
  std::vector<std::string> blocks = chain();
  blocks[9] = "Zacharias spoke. VAR XYZ = 17.";
  blocks[0] = "Zacharias slept.";
  EXPECT_TRUE(follow(blocks, "Which variables are 17?", {9}, 8).empty());
}

TEST(FollowLinks, AWordThatManyBlocksHoldLeadsNowhere) {
  std::vector<std::string> blocks(20, "Nothing.");
  blocks[0] = "The code of Lisbon is 17.";
  for (std::size_t b = 1; b <= kLinkHolders; ++b) blocks[b] = "A code of another town.";
  EXPECT_TRUE(follow(blocks, "Lisbon?", {0}, 8).empty());
  blocks[kLinkHolders] = "Nothing.";
  EXPECT_EQ(follow(blocks, "Lisbon?", {0}, 8).size(), kLinkHolders - 1);
}

TEST(FollowLinks, ABlockThatHoldsNothingOfTheQuestionLeadsNowhere) {
  EXPECT_TRUE(follow(chain(), "Who sings?", {9}, 8).empty());
}

TEST(FollowLinks, TheQuestionsOwnWordsAreNoLinks) {
  std::vector<std::string> blocks(12, "Who is a tailor?");
  blocks[0] = "Mara is a smith.";
  blocks[1] = "Mara is a baker.";
  EXPECT_TRUE(follow(blocks, "What does Mara do?", {0}, 8).empty());
}

TEST(FollowLinks, ABlockThatWasFoundByAWordOrTwoDoesNotLeadAstray) {
  std::vector<std::string> blocks = chain();
  blocks[1] = "VAR KLM = 99.";
  blocks[3] = "VAR NOP = VAR KLM.";
  EXPECT_EQ(follow(blocks, "Which VAR is 17?", {1, 9}, 8), (std::vector<std::size_t>{2, 5}));
}

TEST(FollowLinks, GoesOnFromAFoundBlockThatAnotherLeadsTo) {
  EXPECT_EQ(follow(chain(), "Which variables are 17?", {2, 9}, 8), (std::vector<std::size_t>{5}));
}

TEST(FollowLinks, BeginsWhereTheHeadsAreDrawnAndNotAtTheMostWordsInCommon) {
  std::vector<std::string> blocks = chain();
  blocks[1] = "Another, directly or through Zacharias.";
  blocks[3] = "Zacharias slept.";
  std::vector<double> drawn(blocks.size(), 0.1);
  drawn[9] = 1.0;
  const std::string_view question = "Which variables are 17, directly or through another?";
  EXPECT_EQ(follow(blocks, question, {1, 9}, 8, drawn), (std::vector<std::size_t>{2, 5}));
  EXPECT_EQ(follow(blocks, question, {1, 9}, 8), (std::vector<std::size_t>{3}));
}

RC_GTEST_PROP(FollowLinks, NeverGivesAFoundBlockOrOneTwiceOrMoreThanAsked, ()) {
  const auto word = rc::gen::map(rc::gen::inRange(0, 30), [](int n) { return "w" + std::to_string(n); });
  const auto blocks = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
      rc::gen::map(rc::gen::container<std::vector<std::string>>(word), [](const std::vector<std::string>& words) {
        std::string text;
        for (const std::string& one : words) text += one + (one == "w7" ? ". " : " ");
        return text;
      })));
  const std::vector<std::size_t> found{*rc::gen::inRange<std::size_t>(0, blocks.size())};
  const auto max = *rc::gen::inRange<std::size_t>(0, 6);
  const std::vector<std::size_t> further = follow(blocks, *word + " " + *word, found, max);
  RC_ASSERT(further.size() <= max);
  const std::set<std::size_t> distinct(further.begin(), further.end());
  RC_ASSERT(distinct.size() == further.size());
  RC_ASSERT(distinct.count(found.front()) == 0);
  for (const std::size_t block : further) RC_ASSERT(block < blocks.size());
}

}  // namespace
}  // namespace modeld
