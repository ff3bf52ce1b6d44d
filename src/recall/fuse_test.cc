#include "recall/fuse.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

namespace modeld {
namespace {

std::vector<BlockScore> fuse(ScoreList a, ScoreList b, double k = 10.0) {
  return fuse_ranks(std::vector{std::move(a), std::move(b)}, k);
}

std::vector<std::size_t> to_read(const ScoreList& a, const ScoreList& b, std::size_t most) {
  const std::vector lists{a, b};
  return blocks_to_read(fuse_ranks(lists), lists, most);
}

std::vector<std::size_t> order(const std::vector<BlockScore>& fused) {
  std::vector<std::size_t> out;
  for (const BlockScore& b : fused) out.push_back(b.block);
  return out;
}

std::size_t place_of(const std::vector<BlockScore>& fused, std::size_t block) {
  const auto blocks = order(fused);
  return static_cast<std::size_t>(std::find(blocks.begin(), blocks.end(), block) - blocks.begin());
}

/// Few distinct values, so that ties and zeros are common.
std::vector<double> scores(std::size_t count) {
  return *rc::gen::container<std::vector<double>>(count,
                                                  rc::gen::map(rc::gen::inRange(-1, 8), [](int n) { return n * 0.5; }));
}

TEST(FuseRanks, AddsOneOverKPlusRank) {
  const auto fused = fuse({0.9, 0.1, 0.5}, {0.0, 3.0, 1.0});
  EXPECT_EQ(order(fused), (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_DOUBLE_EQ(fused[0].score, 1.0 / 13 + 1.0 / 11);
  EXPECT_DOUBLE_EQ(fused[1].score, 1.0 / 12 + 1.0 / 12);
  EXPECT_DOUBLE_EQ(fused[2].score, 1.0 / 11);
}

TEST(FuseRanks, WhatScoresNothingGetsNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const BlockScore& b : fuse({0.0, -1.0, nan}, {0.0, nan, -2.0})) EXPECT_EQ(b.score, 0.0);
  EXPECT_TRUE(fuse({}, {}).empty());
}

TEST(FuseRanks, EqualSumsGoByTheFirstListThenByIndex) {
  EXPECT_EQ(order(fuse({1.0, 2.0}, {2.0, 1.0})), (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(order(fuse({1.0, 1.0, 1.0}, {1.0, 1.0, 1.0})), (std::vector<std::size_t>{0, 1, 2}));
}

RC_GTEST_PROP(FuseRanks, EveryBlockOnceBestFirst, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 30);
  const auto fused = fuse(scores(count), scores(count));
  auto blocks = order(fused);
  std::sort(blocks.begin(), blocks.end());
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  RC_ASSERT(blocks == all);
  RC_ASSERT(std::is_sorted(fused.begin(), fused.end(), [](auto& x, auto& y) { return x.score > y.score; }));
}

RC_GTEST_PROP(FuseRanks, ScoresFollowTheBlocksThroughAnyPermutation, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 30);
  const auto a = scores(count);
  const auto b = scores(count);
  std::vector<std::size_t> to(count);
  std::iota(to.begin(), to.end(), std::size_t{0});
  std::shuffle(to.begin(), to.end(), std::mt19937(*rc::gen::arbitrary<std::uint32_t>()));
  std::vector<double> moved_a(count);
  std::vector<double> moved_b(count);
  for (std::size_t i = 0; i < count; ++i) {
    moved_a[to[i]] = a[i];
    moved_b[to[i]] = b[i];
  }
  std::vector<double> before(count);
  std::vector<double> after(count);
  for (const BlockScore& s : fuse(a, b)) before[s.block] = s.score;
  for (const BlockScore& s : fuse(moved_a, moved_b)) after[s.block] = s.score;
  for (std::size_t i = 0; i < count; ++i) RC_ASSERT(before[i] == after[to[i]]);
}

RC_GTEST_PROP(FuseRanks, ABetterScoreNeverLowersThePlace, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 30);
  auto a = scores(count);
  auto b = scores(count);
  const auto block = *rc::gen::inRange<std::size_t>(0, count);
  const std::size_t before = place_of(fuse(a, b), block);
  (*rc::gen::arbitrary<bool>() ? a : b)[block] += *rc::gen::inRange(1, 20) * 0.25;
  RC_ASSERT(place_of(fuse(a, b), block) <= before);
}

TEST(BlocksToRead, OneWhenBothListsAgreeOnTheFirst) {
  const std::vector a{0.1, 0.9, 0.4};
  const std::vector b{1.0, 3.0, 1.4};
  EXPECT_EQ(to_read(a, b, 4), (std::vector<std::size_t>{1}));
}

RC_GTEST_PROP(BlocksToRead, HoldTheFirstOfEachListAndTheBestOfAllInItsPlace, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  const std::vector lists{scores(count), scores(count), scores(count)};
  const auto fused = fuse_ranks(lists);
  const auto blocks = blocks_to_read(fused, lists, 4);
  const std::set<std::size_t> chosen(blocks.begin(), blocks.end());
  RC_ASSERT(chosen.size() == blocks.size());
  RC_ASSERT(chosen.contains(fused.front().block));
  if (blocks_alike(fused, lists) <= 1) RC_ASSERT(blocks.front() == fused.front().block);
  for (const ScoreList& list : lists) {
    const auto first = static_cast<std::size_t>(std::max_element(list.begin(), list.end()) - list.begin());
    RC_ASSERT(list[first] <= 0.0 || chosen.contains(first));
  }
}

TEST(BlocksToRead, AListThatKnowsNothingHasNoSayAndTheMostIsKept) {
  const std::vector a{0.9, 0.1, 0.4};
  const std::vector none{0.0, 0.0, 0.0};
  EXPECT_EQ(to_read(a, none, 4), (std::vector<std::size_t>{0}));
  EXPECT_TRUE(to_read(a, none, 0).empty());
  EXPECT_TRUE(blocks_to_read({}, {}, 4).empty());
}

TEST(FuseRanks, ThreeListsCountAlikeWhereTwoAgreeOnTheFirst) {
  const std::vector<ScoreList> lists = {{3.0, 2.0, 1.0}, {0.0, 2.0, 1.0}, {0.0, 9.0, 8.0}};
  const auto fused = fuse_ranks(lists);
  EXPECT_EQ(order(fused), (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_DOUBLE_EQ(fused[0].score, 1.0 / 12 + 1.0 / 11 + 1.0 / 11);
}

TEST(FuseRanks, MeaningDecidesWhereNoTwoAgreeOnTheFirst) {
  const std::vector<ScoreList> lists = {{9.0, 1.0, 5.0, 1.0}, {8.0, 9.0, 1.0, 1.0}, {0.7, 0.1, 0.8, 0.75}};
  const auto fused = fuse_ranks(lists);
  EXPECT_EQ(order(fused), (std::vector<std::size_t>{2, 3, 0, 1}));
  // Without meaning it is the heads and words that count.
  EXPECT_EQ(fuse(lists[0], lists[1]).front().block, 0U);
}

TEST(FuseRanks, TwoThatAgreeByChanceDoNotOverruleMeaning) {
  // Heads and words choose the first, which holds little of what was asked and hardly leads.
  const std::vector<ScoreList> lists = {{9.0, 8.0, 7.0}, {3.0, 2.0, 1.0}, {0.1, 0.2, 0.8}};
  EXPECT_EQ(fuse_ranks(lists, 0.1).front().block, 2U);
  EXPECT_EQ(fuse_ranks(lists, 0.3).front().block, 0U);
  // Heads that lead by far are right without many words: a chain's first link shares but its number with the question.
  EXPECT_EQ(fuse_ranks(std::vector<ScoreList>{{9.0, 4.0, 4.0}, lists[1], lists[2]}, 0.1).front().block, 0U);
  // Three do not agree by chance.
  EXPECT_EQ(fuse_ranks(std::vector<ScoreList>{lists[0], lists[1], {0.3, 0.2, 0.25}}, 0.0)[1].block, 1U);
}

TEST(BlocksAlike, AreThoseThatEveryListScoresNearItsBest) {
  const std::vector<ScoreList> lists = {{9.0, 8.0, 7.0, 3.0}, {0.7, 1.0, 0.9, 0.8}};
  const auto fused = fuse_ranks(lists);
  EXPECT_EQ(blocks_alike(fused, lists, 0.6), 3U);
  EXPECT_EQ(blocks_alike(fused, lists, 0.95), 0U);  // the lists disagree on the first
  // The later in the text comes first.
  EXPECT_EQ(blocks_to_read(fused, lists, 4), (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(blocks_to_read(fused, lists, 1), (std::vector<std::size_t>{fused.front().block}));
}

RC_GTEST_PROP(BlocksAlike, AreFewerTheMoreIsAskedOfThem, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 12);
  const std::vector lists{scores(count), scores(count)};
  const auto fused = fuse_ranks(lists);
  const double share = *rc::gen::element(0.1, 0.5, 0.9);
  const std::size_t alike = blocks_alike(fused, lists, share);
  RC_ASSERT(blocks_alike(fused, lists, share + 0.1) <= alike);
  for (std::size_t i = 0; i < alike; ++i) {
    for (const ScoreList& list : lists) {
      const double best = *std::max_element(list.begin(), list.end());
      RC_ASSERT(best <= 0.0 || list[fused[i].block] >= share * best);
    }
  }
}

RC_GTEST_PROP(BlocksToRead, NeverMoreThanTheMostNorThanThereAre, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 12);
  const auto a = scores(count);
  const auto b = scores(count);
  const auto most = *rc::gen::inRange<std::size_t>(0, 6);
  RC_ASSERT(to_read(a, b, most).size() <= std::min(count, most));
}

TEST(BestBlocks, WhatSaysNothingIsNotRankedAndEqualsStandInTheOrderOfTheText) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ScoreList scores{-1.0, 0.0, 2.0, nan, 3.0, 2.0};
  EXPECT_EQ(best_blocks(scores, 9), (std::vector<std::size_t>{4, 2, 5, 0}));
  EXPECT_EQ(best_blocks(scores, 2), (std::vector<std::size_t>{4, 2}));
  EXPECT_TRUE(best_blocks({}, 2).empty());
}

}  // namespace
}  // namespace modeld
