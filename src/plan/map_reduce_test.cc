#include "plan/map_reduce.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace modeld {
namespace {

using Sizes = std::vector<std::int32_t>;

MapReduceRequest small(const Sizes& blocks) {
  return {.blocks = blocks,
          .hot = 1000,
          .sinks = 50,
          .question = 40,
          .partial_answer = 60,
          .answer = 100,
          .head = 20,
          .label = 2,
          .lane = 160};
}

TEST(MapReduce, FillsPartsInTextOrderAndWritesOneAnswerFromTheirs) {
  const Sizes blocks(30, 100);  // seven fit: 50 + 700 + max(40 + 100, 160)
  const auto plan = plan_map_reduce(small(blocks));
  ASSERT_TRUE(plan) << to_text(plan.error());
  ASSERT_EQ(plan->parts.size(), 5U);
  EXPECT_EQ(plan->parts[1].first, 7U);
  EXPECT_EQ(plan->parts[4].count, 2U);
  EXPECT_EQ(plan->rounds, (std::vector<Sizes>{{5}}));
  EXPECT_EQ(plan->read_tokens, 3000);
  EXPECT_EQ(plan->computed_tokens, 5 * 40 + 20 + 5 * 62 + 40);
  EXPECT_EQ(plan->written_tokens, 5 * 60 + 100);
}

TEST(MapReduce, PartialAnswersThatDoNotFitAreFoldedInRounds) {
  const Sizes blocks(700, 100);  // a hundred parts; thirteen partial answers fit together
  const auto plan = plan_map_reduce(small(blocks));
  ASSERT_TRUE(plan) << to_text(plan.error());
  ASSERT_EQ(plan->rounds.size(), 2U);
  EXPECT_EQ(plan->rounds[0].size(), 8U);
  EXPECT_EQ(plan->rounds[1], Sizes{8});
}

TEST(MapReduce, OnePartIsAnsweredAtOnce) {
  const Sizes blocks(3, 100);
  const auto plan = plan_map_reduce(small(blocks));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->parts.size(), 1U);
  EXPECT_TRUE(plan->rounds.empty());
  EXPECT_EQ(plan->written_tokens, 100);
  EXPECT_TRUE(plan_map_reduce(small({}))->parts.empty());
}

TEST(MapReduce, WhatCannotFitIsRefusedWithTheNumbers) {
  const Sizes blocks(30, 100);
  MapReduceRequest request = small(blocks);
  request.hot = 300;
  EXPECT_EQ(plan_map_reduce(request).error().code, ErrorCode::hot_too_small);
  request = small(blocks);
  request.head = 740;  // a part fits, two of their answers do not
  EXPECT_EQ(plan_map_reduce(request).error().code, ErrorCode::hot_too_small);
  request = small(blocks);
  request.answer = 0;
  EXPECT_EQ(plan_map_reduce(request).error().code, ErrorCode::bad_argument);
}

MapReduceRequest some_request(const Sizes& blocks) {
  MapReduceRequest request{.blocks = blocks};
  request.hot = *rc::gen::inRange(500, 3000);
  request.sinks = *rc::gen::inRange(0, 100);
  request.question = *rc::gen::inRange(1, 150);
  request.partial_answer = *rc::gen::inRange(1, 80);
  request.answer = *rc::gen::inRange(1, 120);
  request.head = *rc::gen::inRange(0, 30);
  request.label = *rc::gen::inRange(0, 10);
  request.lane = *rc::gen::inRange(0, 200);
  return request;
}

RC_GTEST_PROP(MapReduce, EachBlockIsReadOnceInOrderInPartsThatFit, ()) {
  const auto blocks = *rc::gen::container<Sizes>(rc::gen::inRange(1, 129));
  const MapReduceRequest request = some_request(blocks);
  const auto plan = plan_map_reduce(request);
  RC_PRE(plan.has_value());
  std::size_t next = 0;
  for (const MapPart& part : plan->parts) {
    RC_ASSERT(part.first == next);
    RC_ASSERT(part.count > 0U);
    next += part.count;
    const auto* const begin = blocks.data() + part.first;
    RC_ASSERT(part.tokens == std::accumulate(begin, begin + part.count, 0));
    const std::int32_t answer = std::max(request.partial_answer, request.answer);
    RC_ASSERT(request.sinks + part.tokens + std::max(request.question + answer, request.lane) <= request.hot);
  }
  RC_ASSERT(next == blocks.size());
  MapReduceRequest larger = request;
  larger.hot += *rc::gen::inRange(0, 500);
  RC_ASSERT(plan_map_reduce(larger)->parts.size() <= plan->parts.size());
}

RC_GTEST_PROP(MapReduce, EachRoundTakesAllPartialAnswersAndTheLastGivesOne, ()) {
  const auto blocks = *rc::gen::container<Sizes>(rc::gen::inRange(60, 129));
  const MapReduceRequest request = some_request(blocks);
  const auto plan = plan_map_reduce(request);
  RC_PRE(plan.has_value() && plan->parts.size() > 1);
  auto answers = static_cast<std::int32_t>(plan->parts.size());
  std::int64_t computed = std::int64_t{answers} * request.question;
  std::int64_t written = std::int64_t{answers} * request.partial_answer;
  for (const Sizes& round : plan->rounds) {
    RC_ASSERT(std::accumulate(round.begin(), round.end(), 0) == answers);
    RC_ASSERT(std::cmp_less(round.size(), answers));
    answers = static_cast<std::int32_t>(round.size());
    for (const std::int32_t count : round) {
      RC_ASSERT(count > 0);
      if (count == 1) continue;
      const std::int32_t prompt = request.head + count * (request.label + request.partial_answer) + request.question;
      RC_ASSERT(prompt + std::max(request.partial_answer, request.answer) <= request.hot);
      computed += prompt;
      written += answers == 1 ? request.answer : request.partial_answer;
    }
  }
  RC_ASSERT(answers == 1);
  RC_ASSERT(plan->computed_tokens == computed);
  RC_ASSERT(plan->written_tokens == written);
}

}  // namespace
}  // namespace modeld
