#include "recall/fuse.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace modeld {
namespace {

std::vector<BlockScore> fuse(ScoreList a, ScoreList b, double k = 10.0) {
  return fuse_ranks(std::vector{std::move(a), std::move(b)}, k);
}

std::size_t to_read(const ScoreList& a, const ScoreList& b, std::size_t most) {
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
  const std::vector a{0.1, 0.9, 0.5};
  const std::vector b{1.0, 3.0, 2.0};
  EXPECT_EQ(to_read(a, b, 4), 1U);
}

TEST(BlocksToRead, EnoughToHoldTheFirstOfEachList) {
  const std::vector a{0.9, 0.1, 0.5, 0.4};
  const std::vector b{0.1, 3.0, 2.0, 0.2};
  const auto fused = fuse(a, b);
  const std::size_t count = to_read(a, b, 4);
  const auto places = order(fused);
  for (const std::size_t first : {0U, 1U}) {
    EXPECT_LT(std::find(places.begin(), places.end(), first) - places.begin(), static_cast<std::ptrdiff_t>(count));
  }
}

TEST(BlocksToRead, AListThatKnowsNothingHasNoSayAndTheMostIsKept) {
  const std::vector a{0.9, 0.1, 0.5};
  const std::vector none{0.0, 0.0, 0.0};
  EXPECT_EQ(to_read(a, none, 4), 1U);
  EXPECT_EQ(to_read(a, none, 0), 0U);
  EXPECT_EQ(blocks_to_read({}, {}, 4), 0U);
}

TEST(FuseRanks, ThreeListsCountAlike) {
  const std::vector<ScoreList> lists = {{3.0, 2.0, 1.0}, {0.0, 1.0, 2.0}, {0.0, 9.0, 8.0}};
  const auto fused = fuse_ranks(lists);
  EXPECT_EQ(order(fused), (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_DOUBLE_EQ(fused[0].score, 1.0 / 12 + 1.0 / 12 + 1.0 / 11);
  EXPECT_EQ(blocks_to_read(fused, lists, 4), 3U);
}

RC_GTEST_PROP(BlocksToRead, NeverMoreThanTheMostNorThanThereAre, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 12);
  const auto a = scores(count);
  const auto b = scores(count);
  const auto most = *rc::gen::inRange<std::size_t>(0, 6);
  RC_ASSERT(to_read(a, b, most) <= std::min(count, most));
}

}  // namespace
}  // namespace modeld
