#include "plan/map_reduce.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "session/session_fixture.h"

namespace modeld {
namespace {

using testing::question_of;
using testing::World;

Answer must(Result<Answer> answer) {
  if (!answer) {
    ADD_FAILURE() << to_text(answer.error());
    return {};
  }
  return std::move(*answer);
}

Question map_question(const Needle& needle) {
  Question question = question_of(needle);
  question.map = true;
  question.partial_tokens_max = 4;
  return question;
}

void expect_counts(const Answer& answer) {
  EXPECT_EQ(answer.prompt_tokens, answer.reused_tokens + answer.computed_tokens);
  EXPECT_EQ(answer.prompt_tokens, answer.attended_tokens + answer.cold_tokens + answer.dropped_tokens);
  EXPECT_EQ(answer.attended_tokens, answer.prompt_tokens);
}

bool holds(const std::vector<PartialAnswer>& parts, const std::string& answer) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const PartialAnswer& part) { return answer_contains(part.text, answer); });
}

/// How often each block's KV was fetched from the store, of the only session that uses it.
std::vector<std::uint32_t> fetches(const ColdStore& store) {
  SessionId id{1};
  while (store.records(id).empty()) ++id.value;
  std::vector<std::uint32_t> counts;
  for (const BlockRecord& record : store.records(id)) counts.push_back(record.fetches);
  return counts;
}

TEST(MapSession, FetchesTheKvOfEachBlockExactlyOnce) {
  World world;
  const auto session = world.open_with_text(World::settings());
  ASSERT_TRUE(session->ingest());
  const std::vector<std::uint32_t> before = fetches(*world.store);
  ASSERT_EQ(before.size(), session->blocks().size());
  ASSERT_TRUE(session->ask(map_question(world.needles[0])));
  const std::vector<std::uint32_t> after = fetches(*world.store);
  for (std::size_t b = 0; b < before.size(); ++b) EXPECT_EQ(after[b], before[b] + 1) << b;
}

TEST(MapSession, ReadsEachBlockOnceAndAFactAtAnyDepthIsInAPartialAnswer) {
  World world;
  const auto session = world.open_with_text(World::settings());
  ASSERT_TRUE(session->ingest());
  const std::vector<StreamRange> blocks = session->blocks();
  for (const Needle& needle : world.needles) {
    const Answer answer = must(session->ask(map_question(needle)));
    ASSERT_TRUE(answer.map);
    const MapReport& map = *answer.map;
    EXPECT_GT(map.parts.size(), 10U);
    EXPECT_EQ(map.parts.front().range.begin, blocks.front().begin);
    EXPECT_EQ(map.parts.back().range.end, blocks.back().end);
    for (std::size_t i = 1; i < map.parts.size(); ++i) EXPECT_EQ(map.parts[i].range.begin, map.parts[i - 1].range.end);
    EXPECT_EQ(map.read_tokens, blocks.back().end - blocks.front().begin);
    EXPECT_TRUE(holds(map.parts, needle.answer)) << needle.sentence;
    EXPECT_EQ(map.parts.front().source, "book.txt");
    EXPECT_LE(map.parts.front().line_begin, map.parts.front().line_end);
    EXPECT_FALSE(answer.tokens.empty());
    EXPECT_TRUE(answer.retrieved.empty());
    expect_counts(answer);
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(MapSession, TakesNoMoreThanThePlanSaysBeforehand) {
  World world;
  const auto session = world.open_with_text(World::settings());
  const Question question = map_question(world.needles[2]);
  const Result<MapReducePlan> before = session->plan_map(question);
  ASSERT_TRUE(before) << to_text(before.error());
  const Answer answer = must(session->ask(question));
  ASSERT_TRUE(answer.map);
  EXPECT_EQ(answer.map->parts.size(), before->parts.size());
  EXPECT_EQ(answer.map->rounds, static_cast<std::int32_t>(before->rounds.size()));
  EXPECT_EQ(answer.map->read_tokens, before->read_tokens);
  EXPECT_LE(answer.map->computed_tokens, before->computed_tokens);
  EXPECT_LE(answer.map->written_tokens, before->written_tokens);
  EXPECT_GT(2 * answer.map->computed_tokens, before->computed_tokens);
  // A second pass computes nothing of the text.
  const Answer again = must(session->ask(question));
  EXPECT_EQ(again.tokens, answer.tokens);
  EXPECT_EQ(again.reused_tokens, session->stream_tokens());
}

TEST(MapSession, PartialAnswersThatDoNotFitTogetherAreFoldedInRounds) {
  World world;
  const auto session = world.open_with_text(World::settings(900));
  Question question = map_question(world.needles[4]);
  question.partial_tokens_max = 96;
  const Answer answer = must(session->ask(question));
  ASSERT_TRUE(answer.map);
  EXPECT_GE(answer.map->rounds, 2);
  EXPECT_TRUE(holds(answer.map->parts, world.needles[4].answer));
  EXPECT_FALSE(answer.tokens.empty());
  expect_counts(answer);
}

TEST(MapSession, AnOrdinaryQuestionAfterwardsIsAnsweredAsBefore) {
  World world;
  const auto session = world.open_with_text(World::settings());
  const Answer before = must(session->ask(question_of(world.needles[1])));
  std::string shown;
  const Answer map =
      must(session->ask(map_question(world.needles[1]), [&shown](std::string_view piece) { shown += piece; }));
  EXPECT_EQ(shown, map.text);
  const Answer after = must(session->ask(question_of(world.needles[1])));
  EXPECT_EQ(after.tokens, before.tokens);
  EXPECT_EQ(after.attended_tokens, before.attended_tokens);
  EXPECT_FALSE(after.map);
  EXPECT_EQ(session->check_integrity(), "");
}

TEST(MapSession, ACancelledPassLeavesTheSessionUsable) {
  World world;
  const auto session = world.open_with_text(World::settings());
  const Answer before = must(session->ask(question_of(world.needles[3])));
  CancelFlag cancel;
  const auto stop_half_way = [&](const Progress& progress) {
    if (progress.done * 2 > progress.total) cancel.request();
  };
  const auto stopped = session->ask(map_question(world.needles[3]), {}, stop_half_way, &cancel);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_EQ(session->check_integrity(), "");
  const Answer after = must(session->ask(question_of(world.needles[3])));
  EXPECT_EQ(after.tokens, before.tokens);
  EXPECT_EQ(session->check_integrity(), "");
  EXPECT_TRUE(holds(must(session->ask(map_question(world.needles[3]))).map->parts, world.needles[3].answer));
}

TEST(MapSession, AnEngineFailureEndsThePassAndTheNextOneIsWhole) {
  for (const std::int64_t fail_at : {90, 100, 120, 140}) {
    ScriptedOptions options;
    options.fail_at_compute = fail_at;
    World world(60'000, 4, options);
    const auto session = world.open_with_text(World::settings());
    auto answer = session->ask(map_question(world.needles[1]));
    if (!answer) {
      EXPECT_EQ(answer.error().code, ErrorCode::engine_failed);
      answer = session->ask(map_question(world.needles[1]));
    }
    const Answer whole = must(std::move(answer));
    ASSERT_TRUE(whole.map);
    EXPECT_TRUE(holds(whole.map->parts, world.needles[1].answer)) << fail_at;
    expect_counts(whole);
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(MapSession, WhatAFullStoreDroppedIsComputedAgainAndRead) {
  World world(60'000, 4, {}, 7 << 20U);
  const auto session = world.open_with_text(World::settings());
  const Answer ordinary = must(session->ask(question_of(world.needles[0])));
  ASSERT_GT(ordinary.dropped_tokens, 0);
  for (const Needle& needle : world.needles) {
    const Answer answer = must(session->ask(map_question(needle)));
    ASSERT_TRUE(answer.map);
    EXPECT_TRUE(holds(answer.map->parts, needle.answer)) << needle.sentence;
    EXPECT_GT(answer.recomputed_tokens, answer.map->computed_tokens);
    expect_counts(answer);
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(MapSession, PinnedTextIsReadOnceLikeAllOther) {
  World world;
  const auto session = world.open(World::settings());
  const std::vector<TextPart> parts = {{"rules.txt", filler_prose(1'200, 21), SegmentKind::pinned},
                                       {"book.txt", world.text, SegmentKind::user}};
  ASSERT_TRUE(session->append(parts));
  const Answer answer = must(session->ask(map_question(world.needles[5])));
  ASSERT_TRUE(answer.map);
  EXPECT_EQ(answer.map->read_tokens, session->blocks().back().end - session->blocks().front().begin);
  EXPECT_TRUE(holds(answer.map->parts, world.needles[5].answer));
  expect_counts(answer);
}

TEST(MapSession, ATextThatIsAttendedAsAWholeNeedsNoPass) {
  World world(3'000, 2);
  const auto session = world.open_with_text(World::settings());
  EXPECT_TRUE(session->plan_map(map_question(world.needles[1]))->parts.empty());
  const Answer answer = must(session->ask(map_question(world.needles[1])));
  EXPECT_TRUE(answer.exact);
  EXPECT_FALSE(answer.map);
}

TEST(MapSession, APartialAnswerThatFindsNoRoomIsRefusedWithTheNumbers) {
  World world;
  const auto session = world.open_with_text(World::settings());
  Question question = map_question(world.needles[0]);
  question.partial_tokens_max = 1500;
  const auto answer = session->ask(question);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::hot_too_small);
  EXPECT_TRUE(session->ask(question_of(world.needles[0])));
}

}  // namespace
}  // namespace modeld
