#include "plan/reading.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace modeld {
namespace {

constexpr std::int32_t kBlockMax = 128;

ReadingPolicy any_policy() {
  ReadingPolicy policy;
  policy.origin = *rc::gen::element(KvOrigin::isolated, KvOrigin::streamed);
  policy.stream_window = *rc::gen::element(512, 1024, 2048);
  policy.run_up = *rc::gen::element(0, 32, 64);
  policy.blocks = *rc::gen::inRange(0, 12);
  policy.sinks = *rc::gen::inRange(0, 100);
  policy.recent = *rc::gen::inRange(0, 1500);
  return policy;
}

struct Asked {
  ReadingPolicy policy = any_policy();
  std::int32_t hot = *rc::gen::inRange(0, 6000);
  std::int32_t question = *rc::gen::inRange(0, 600);
  std::int32_t reserve = *rc::gen::inRange(0, 600);
  [[nodiscard]] Result<TurnShape> shape() const { return shape_turn(policy, hot, question, reserve, kBlockMax); }
};

std::int32_t answer_tokens(const TurnShape& shape) {
  return shape.sinks + shape.recent + shape.blocks * kBlockMax + shape.question + shape.reserve;
}

RC_GTEST_PROP(ChoosePolicy, TheSafeOneGivesWayOnlyToABetterOne, ()) {
  const auto asked = *rc::gen::inRange(1, 200);
  const auto right = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, asked + 1)));
  const auto safe = *rc::gen::inRange<std::size_t>(0, right.size());
  std::vector<PolicyScore> scores;
  for (const int one : right) scores.push_back({one, asked});
  const std::size_t chosen = choose_policy(scores, safe);
  if (chosen != safe) {
    RC_ASSERT(scores[chosen].right > scores[safe].right);
    RC_ASSERT(scores[chosen].right == *std::max_element(right.begin(), right.end()));
  }
}

TEST(ChoosePolicy, AFewQuestionsMoreAreChanceAndManyAreNot) {
  const auto chosen = [](PolicyScore safe, PolicyScore other) { return choose_policy(std::array{safe, other}, 0); };
  EXPECT_EQ(chosen({14, 24}, {16, 24}), 0U);
  EXPECT_EQ(chosen({14, 24}, {19, 24}), 1U);
  EXPECT_EQ(chosen({140, 240}, {160, 240}), 1U);
  EXPECT_EQ(chosen({0, 0}, {0, 24}), 0U);
}

RC_GTEST_PROP(TurnShape, CellsHoldTheAnswerAndOneLaneWithinTheHotBudget, ()) {
  const Asked asked;
  const auto shape = asked.shape();
  RC_PRE(shape.has_value());
  RC_ASSERT(shape->cells <= asked.hot);
  RC_ASSERT(shape->cells >= answer_tokens(*shape));
  const std::int32_t lane = asked.policy.run_up + kBlockMax;
  const std::int32_t behind = shape->cells - shape->sinks - shape->recent;
  RC_ASSERT(behind >= (asked.policy.origin == KvOrigin::isolated ? lane : kBlockMax));
  if (asked.policy.origin == KvOrigin::isolated) {
    // A batch of 512 is filled, or not one lane more would fit.
    RC_ASSERT(behind / lane * lane >= 512 || shape->sinks + shape->recent + (behind / lane + 1) * lane > asked.hot);
  }
}

RC_GTEST_PROP(TurnShape, ShrinksTheRecentWindowFirstThenTheBlocks, ()) {
  const Asked asked;
  const auto shape = asked.shape();
  RC_PRE(shape.has_value());
  const ReadingPolicy& policy = asked.policy;
  RC_ASSERT(shape->sinks == policy.sinks);
  RC_ASSERT(shape->question == asked.question);
  RC_ASSERT(shape->reserve == asked.reserve);
  RC_ASSERT(shape->recent <= policy.recent);
  RC_ASSERT(shape->recent >= std::min(policy.recent, kBlockMax));
  RC_ASSERT(shape->blocks <= policy.blocks);
  RC_ASSERT(shape->blocks >= std::min(policy.blocks, 1));
  if (shape->blocks < policy.blocks) {
    // One block more would not have fitted, even with the smallest recent window.
    const std::int32_t spare = shape->recent - std::min(policy.recent, kBlockMax);
    RC_ASSERT(answer_tokens(*shape) - spare + kBlockMax > asked.hot);
  }
  if (shape->recent < policy.recent) {
    // One token more of the recent window would not have fitted either.
    const std::int32_t lane = policy.origin == KvOrigin::isolated ? policy.run_up + kBlockMax : kBlockMax;
    RC_ASSERT(std::max(answer_tokens(*shape), shape->sinks + shape->recent + lane) + 1 > asked.hot);
  }
}

RC_GTEST_PROP(TurnShape, RefusesOnlyWhatDoesNotFitAtItsSmallest, ()) {
  const Asked asked;
  const auto shape = asked.shape();
  const ReadingPolicy& policy = asked.policy;
  if (asked.question > asked.hot / 2) {
    RC_ASSERT(shape.error().code == ErrorCode::question_too_long);
    return;
  }
  const std::int32_t kept = policy.sinks + std::min(policy.recent, kBlockMax);
  const std::int32_t answer = kept + std::min(policy.blocks, 1) * kBlockMax + asked.question + asked.reserve;
  const std::int32_t ingest = kept + kBlockMax + (policy.origin == KvOrigin::isolated ? policy.run_up : 0);
  const std::int32_t least = std::max(answer, ingest);
  RC_ASSERT(shape.has_value() == (least <= asked.hot));
  if (shape) return;
  RC_ASSERT(shape.error().code == ErrorCode::hot_too_small);
  RC_ASSERT(shape.error().numbers.at(1) == ErrorNumber("needed_tokens", least));
  // And what is said to be needed is enough.
  RC_ASSERT(shape_turn(policy, least, std::min(asked.question, least / 2), asked.reserve, kBlockMax).has_value());
}

RC_GTEST_PROP(TurnShape, ALargerHotBudgetNeverGivesLess, ()) {
  Asked asked;
  const auto smaller = asked.shape();
  RC_PRE(smaller.has_value());
  asked.hot += *rc::gen::inRange(0, 1000);
  const auto larger = asked.shape();
  RC_ASSERT(larger.has_value());
  RC_ASSERT(larger->blocks >= smaller->blocks);
  RC_ASSERT(larger->blocks > smaller->blocks || larger->recent >= smaller->recent);
}

TEST(TurnShape, TheDefaultPolicyFitsWholeInAHotSetOf2048) {
  const TurnShape shape = shape_turn(ReadingPolicy{}, 2048, 64, 256, kBlockMax).value();
  EXPECT_EQ(shape.recent, 512);
  EXPECT_EQ(shape.blocks, 4);
  EXPECT_EQ(shape.cells, 64 + 512 + 4 * 128 + 64 + 256);  // the answer needs more than 4 lanes of 160
}

TEST(TurnShape, LanesFillABatchWhereTheAnswerIsShort) {
  ReadingPolicy policy;
  policy.blocks = 1;
  EXPECT_EQ(shape_turn(policy, 2048, 10, 10, kBlockMax).value().cells, 64 + 512 + 4 * 160);
  EXPECT_EQ(shape_turn(policy, 64 + 512 + 3 * 160 + 20, 10, 10, kBlockMax).value().cells, 64 + 512 + 3 * 160);
}

TEST(TurnShape, AQuestionMayTakeHalfOfTheHotSet) {
  ReadingPolicy policy;
  policy.blocks = 1;
  EXPECT_TRUE(shape_turn(policy, 2048, 1024, 100, kBlockMax));
  const auto refused = shape_turn(policy, 2048, 1025, 100, kBlockMax);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::question_too_long);
  EXPECT_EQ(refused.error().numbers.at(1), ErrorNumber("question_tokens_max", 1024));
}

TEST(TurnShape, RefusesNegativeSizes) {
  ReadingPolicy policy;
  policy.run_up = -1;
  EXPECT_EQ(shape_turn(policy, 2048, 10, 10, kBlockMax).error().code, ErrorCode::bad_argument);
  EXPECT_EQ(shape_turn({}, 2048, -10, 10, kBlockMax).error().code, ErrorCode::bad_argument);
  EXPECT_EQ(shape_turn({}, 2048, 10, 10, 0).error().code, ErrorCode::bad_argument);
}

}  // namespace
}  // namespace modeld
