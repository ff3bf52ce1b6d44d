#include "plan/hot_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

namespace modeld {
namespace {

/// Blocks of a stream whose first and last few are always attended.
std::vector<BlockView> any_blocks() {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  std::vector<BlockView> blocks(*rc::gen::inRange<std::size_t>(0, 60));
  StreamPos at;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    BlockView& block = blocks[i];
    at += static_cast<std::int64_t>(random() % 2 * (random() % 100));  // a gap, sometimes
    block.range = {at, at + 1 + static_cast<std::int64_t>(random() % 128)};
    at = block.range.end;
    block.cls = static_cast<CacheClass>(random() % 3);
    block.residence = static_cast<Residence>(random() % 3);
    block.always = i < 1 || i + 3 > blocks.size();
    block.last_use = random() % 4;  // few values, so that ties happen
    block.score = static_cast<double>(random() % 7) - 2.0;
  }
  return blocks;
}

HotSetRequest any_request(const std::vector<BlockView>& blocks) {
  HotSetRequest request;
  request.blocks = blocks;
  request.budget_tokens = *rc::gen::inRange(0, 4000);
  request.retrieved_max = *rc::gen::inRange(0, 8);
  request.pinned_share = *rc::gen::element(0.0, 0.25, 0.5, 1.0);
  return request;
}

std::set<std::size_t> hot_of(const HotSetPlan& plan) {
  std::set<std::size_t> hot(plan.keep.begin(), plan.keep.end());
  hot.insert(plan.fetch.begin(), plan.fetch.end());
  return hot;
}

template <typename Accept>
std::int64_t tokens_of(const std::vector<BlockView>& blocks, const std::set<std::size_t>& chosen, Accept&& accept) {
  std::int64_t tokens = 0;
  for (const std::size_t i : chosen) {
    if (accept(blocks[i])) tokens += blocks[i].range.size();
  }
  return tokens;
}
std::int64_t tokens_of(const std::vector<BlockView>& blocks, const std::set<std::size_t>& chosen) {
  return tokens_of(blocks, chosen, [](const BlockView&) { return true; });
}
std::int64_t always_tokens(const std::vector<BlockView>& blocks) {
  std::int64_t tokens = 0;
  for (const BlockView& block : blocks) tokens += block.always ? block.range.size() : 0;
  return tokens;
}
bool pinned(const BlockView& block) { return !block.always && block.cls != CacheClass::volatile_; }

RC_GTEST_PROP(HotSet, RefusesExactlyWhenWhatAlwaysStaysDoesNotFit, ()) {
  const auto blocks = any_blocks();
  const HotSetRequest request = any_request(blocks);
  const auto plan = plan_hot_set(request);
  const std::int64_t needed = always_tokens(blocks);
  RC_ASSERT(plan.has_value() == (needed <= request.budget_tokens));
  if (plan) return;
  RC_ASSERT(plan.error().code == ErrorCode::hot_too_small);
  RC_ASSERT(plan.error().numbers.at(0) == ErrorNumber("needed_tokens", needed));
  RC_ASSERT(plan.error().numbers.at(1) == ErrorNumber("budget_tokens", request.budget_tokens));
}

RC_GTEST_PROP(HotSet, SinksAndRecentWindowAlwaysStayWithinTheBudget, ()) {
  const auto blocks = any_blocks();
  const HotSetRequest request = any_request(blocks);
  const auto plan = plan_hot_set(request);
  RC_PRE(plan.has_value());
  const auto hot = hot_of(*plan);
  for (std::size_t i = 0; i < blocks.size(); ++i) RC_ASSERT(!blocks[i].always || hot.contains(i));
  RC_ASSERT(plan->hot_tokens == tokens_of(blocks, hot));
  RC_ASSERT(plan->hot_tokens <= request.budget_tokens);
}

RC_GTEST_PROP(HotSet, KeepEvictAndFetchAreTheDifferenceToWhatIsResident, ()) {
  const auto blocks = any_blocks();
  const auto plan = plan_hot_set(any_request(blocks));
  RC_PRE(plan.has_value());
  const auto hot = hot_of(*plan);
  RC_ASSERT(hot.size() == plan->keep.size() + plan->fetch.size());
  std::set<std::size_t> resident(plan->keep.begin(), plan->keep.end());
  resident.insert(plan->evict.begin(), plan->evict.end());
  RC_ASSERT(resident.size() == plan->keep.size() + plan->evict.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    RC_ASSERT(resident.contains(i) == (blocks[i].residence == Residence::hot));
    RC_ASSERT(!(hot.contains(i) && std::binary_search(plan->evict.begin(), plan->evict.end(), i)));
  }
  for (const auto* list : {&plan->keep, &plan->evict, &plan->fetch, &plan->pinned_cold}) {
    RC_ASSERT(std::is_sorted(list->begin(), list->end()));
  }
}

RC_GTEST_PROP(HotSet, DoesNotDependOnWhatWasResident, ()) {
  auto blocks = any_blocks();
  const HotSetRequest request = any_request(blocks);
  const auto plan = plan_hot_set(request);
  RC_PRE(plan.has_value());
  for (BlockView& block : blocks) block.residence = Residence::cold;  // as after a crash
  const auto resumed = plan_hot_set(request);
  RC_ASSERT(resumed.has_value());
  RC_ASSERT(hot_of(*plan) == hot_of(*resumed));
  RC_ASSERT(plan->retrieved == resumed->retrieved);
  RC_ASSERT(plan->pinned_cold == resumed->pinned_cold);
}

/// Whether block `a` is worth more than `b` of the same class.
bool better(const BlockView& a, const BlockView& b) {
  const double score_a = std::max(a.score, 0.0);
  const double score_b = std::max(b.score, 0.0);
  return score_a != score_b ? score_a > score_b : a.last_use > b.last_use;
}

/// Whether pinned block `a` comes in before pinned block `b`.
bool precedes(const std::vector<BlockView>& blocks, std::size_t a, std::size_t b) {
  if (blocks[a].cls != blocks[b].cls) return blocks[a].cls < blocks[b].cls;
  if (better(blocks[a], blocks[b]) || better(blocks[b], blocks[a])) return better(blocks[a], blocks[b]);
  return a < b;
}

RC_GTEST_PROP(HotSet, NeverInvertsTheCacheClassesNorTheOrderWithinOne, ()) {
  const auto blocks = any_blocks();
  const auto plan = plan_hot_set(any_request(blocks));
  RC_PRE(plan.has_value());
  const auto hot = hot_of(*plan);
  const std::set<std::size_t> retrieved(plan->retrieved.begin(), plan->retrieved.end());
  for (std::size_t cold = 0; cold < blocks.size(); ++cold) {
    if (hot.contains(cold)) continue;
    for (const std::size_t i : hot) {
      if (blocks[i].always) continue;
      if (retrieved.contains(i)) {
        RC_ASSERT(blocks[i].score >= blocks[cold].score);
      } else {
        RC_ASSERT(pinned(blocks[i]));
        RC_ASSERT(!pinned(blocks[cold]) || precedes(blocks, i, cold));
      }
    }
  }
}

RC_GTEST_PROP(HotSet, NeverEvictsPinnedForARetrievedBlockWithinTheShare, ()) {
  const auto blocks = any_blocks();
  const HotSetRequest request = any_request(blocks);
  const auto plan = plan_hot_set(request);
  RC_PRE(plan.has_value());
  const auto hot = hot_of(*plan);
  const std::set<std::size_t> retrieved(plan->retrieved.begin(), plan->retrieved.end());
  const auto share = static_cast<std::int64_t>(request.pinned_share * request.budget_tokens);
  // Pinned tokens that are hot for their class, and the first pinned block that is not.
  std::int64_t for_class = 0;
  std::size_t first = blocks.size();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!pinned(blocks[i])) continue;
    if (hot.contains(i) && !retrieved.contains(i)) {
      for_class += blocks[i].range.size();
    } else if (first == blocks.size() || precedes(blocks, i, first)) {
      first = i;
    }
  }
  RC_ASSERT(for_class <= share);
  if (!retrieved.empty() && first < blocks.size()) RC_ASSERT(for_class + blocks[first].range.size() > share);
}

RC_GTEST_PROP(HotSet, RetrievalTakesTheBestFirstAndNoMoreThanAllowed, ()) {
  const auto blocks = any_blocks();
  const HotSetRequest request = any_request(blocks);
  const auto plan = plan_hot_set(request);
  RC_PRE(plan.has_value());
  const auto hot = hot_of(*plan);
  RC_ASSERT(std::ssize(plan->retrieved) <= request.retrieved_max);
  for (std::size_t n = 0; n < plan->retrieved.size(); ++n) {
    const BlockView& block = blocks[plan->retrieved[n]];
    RC_ASSERT(hot.contains(plan->retrieved[n]));
    RC_ASSERT(block.score > 0.0);
    if (n > 0) RC_ASSERT(blocks[plan->retrieved[n - 1]].score >= block.score);
  }
  // A volatile block is hot because it always is, or for its score.
  const std::set<std::size_t> retrieved(plan->retrieved.begin(), plan->retrieved.end());
  for (const std::size_t i : hot) {
    if (blocks[i].cls == CacheClass::volatile_ && !blocks[i].always) RC_ASSERT(retrieved.contains(i));
  }
  // Every pinned block is hot or reported.
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!pinned(blocks[i])) continue;
    RC_ASSERT(hot.contains(i) != std::binary_search(plan->pinned_cold.begin(), plan->pinned_cold.end(), i));
  }
}

RC_GTEST_PROP(HotSet, ALargerBudgetNeverHoldsFewerPinnedTokens, ()) {
  const auto blocks = any_blocks();
  HotSetRequest request = any_request(blocks);
  request.retrieved_max = 0;
  const auto smaller = plan_hot_set(request);
  RC_PRE(smaller.has_value());
  request.budget_tokens += *rc::gen::inRange(0, 1000);
  const auto larger = plan_hot_set(request);
  RC_ASSERT(larger.has_value());
  const auto before = hot_of(*smaller);
  const auto after = hot_of(*larger);
  RC_ASSERT(std::includes(after.begin(), after.end(), before.begin(), before.end()));
  RC_ASSERT(tokens_of(blocks, after, pinned) >= tokens_of(blocks, before, pinned));
}

// ── examples ────────────────────────────────────────────────────────────────────────────────────────────────────────

BlockView block(std::int64_t begin, std::int64_t size, CacheClass cls, double score = 0.0) {
  BlockView view;
  view.range = {StreamPos(begin), StreamPos(begin + size)};
  view.cls = cls;
  view.score = score;
  return view;
}

TEST(HotSet, PinnedTextBeyondItsShareIsColdAndReported) {
  std::vector<BlockView> blocks;
  for (std::int64_t i = 0; i < 10; ++i) blocks.push_back(block(i * 100, 100, CacheClass::task_pinned));
  blocks.push_back(block(1000, 100, CacheClass::volatile_, 1.0));
  const HotSetPlan plan = plan_hot_set({blocks, 600, 4, 0.5}).value();
  EXPECT_EQ(plan.fetch, (std::vector<std::size_t>{0, 1, 2, 10}));
  EXPECT_EQ(plan.retrieved, (std::vector<std::size_t>{10}));
  EXPECT_EQ(plan.pinned_cold, (std::vector<std::size_t>{3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(plan.hot_tokens, 400);
}

TEST(HotSet, PinnedTextBeyondItsShareComesBackForItsScoreBeforeItsEquals) {
  std::vector<BlockView> blocks = {block(0, 100, CacheClass::volatile_, 1.0),
                                   block(100, 100, CacheClass::task_pinned, 2.0),
                                   block(200, 100, CacheClass::repo_map, 1.0)};
  const HotSetPlan plan = plan_hot_set({blocks, 200, 1, 0.5}).value();
  EXPECT_EQ(plan.retrieved, (std::vector<std::size_t>{2}));
  EXPECT_TRUE(plan.pinned_cold.empty());
}

TEST(HotSet, RetrievalNeverTakesTheRoomOfPinnedTextWithinItsShare) {
  std::vector<BlockView> blocks = {block(0, 100, CacheClass::volatile_), block(100, 100, CacheClass::repo_map),
                                   block(200, 50, CacheClass::volatile_, 9.0)};
  blocks[0].always = true;
  for (BlockView& view : blocks) view.residence = Residence::hot;
  // 150 tokens: 50 are left behind what always stays. The pinned block does not fit them, and nothing overtakes it.
  const HotSetPlan plan = plan_hot_set({blocks, 150, 4, 1.0}).value();
  EXPECT_EQ(plan.keep, (std::vector<std::size_t>{0}));
  EXPECT_EQ(plan.evict, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(plan.pinned_cold, (std::vector<std::size_t>{1}));
}

TEST(HotSet, WhatAlwaysStaysIsRetrievedForItsScoreAndTakesNoRoomForIt) {
  std::vector<BlockView> blocks = {block(0, 100, CacheClass::volatile_, 1.0),
                                   block(100, 100, CacheClass::volatile_, 3.0),
                                   block(200, 100, CacheClass::volatile_, 2.0)};
  blocks[1].always = true;
  const HotSetPlan plan = plan_hot_set({blocks, 200, 3, 0.5}).value();
  EXPECT_EQ(plan.retrieved, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(plan.hot_tokens, 200);
  EXPECT_EQ(plan_hot_set({blocks, 100, 3, 0.5})->retrieved, (std::vector<std::size_t>{1}));
}

TEST(HotSet, AScoreThatIsNoNumberIsNotWanted) {
  std::vector<BlockView> blocks = {block(0, 64, CacheClass::volatile_, std::numeric_limits<double>::quiet_NaN()),
                                   block(64, 64, CacheClass::task_pinned, std::numeric_limits<double>::quiet_NaN()),
                                   block(128, 64, CacheClass::task_pinned, 1.0)};
  const HotSetPlan plan = plan_hot_set({blocks, 192, 4, 0.5}).value();
  EXPECT_EQ(plan.fetch, (std::vector<std::size_t>{2}));
}

TEST(HotSet, RefusesASenselessShareAndACheckHoldsTheOrder) {
  std::vector<BlockView> blocks = {block(0, 64, CacheClass::volatile_), block(32, 64, CacheClass::volatile_)};
  EXPECT_EQ(plan_hot_set({{}, 100, 1, 1.5}).error().code, ErrorCode::bad_argument);
  EXPECT_EQ(plan_hot_set({{}, 100, 1, std::numeric_limits<double>::quiet_NaN()}).error().code, ErrorCode::bad_argument);
  EXPECT_DEATH(static_cast<void>(plan_hot_set({blocks, 100, 1, 0.5})), "broken invariant");
}

}  // namespace
}  // namespace modeld
