#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "session/session_fixture.h"

namespace modeld {
namespace {

using testing::question_of;
using testing::World;

std::vector<Token> tokens_of(const World& world, std::string_view text) {
  return world.engine->tokenize(text, false, false).value_or(std::vector<Token>{});
}

Scored must(Result<Scored> scored) {
  if (!scored) {
    ADD_FAILURE() << to_text(scored.error());
    return {};
  }
  return std::move(*scored);
}

double sum(const Scored& scored) { return std::accumulate(scored.nll.begin(), scored.nll.end(), 0.0); }

/// Negative log-likelihoods of the last `count` tokens, all computed densely through the bare engine.
std::vector<double> plainly(World& world, const std::vector<Token>& tokens, std::size_t count) {
  EXPECT_TRUE(world.engine->open_context({.cells = 4096}));
  std::vector<BatchToken> batch;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    batch.push_back({tokens[i], Place(static_cast<std::int32_t>(i)), 0, i + count + 1 >= tokens.size()});
  EXPECT_TRUE(world.engine->compute(batch));
  std::vector<double> nll;
  for (std::size_t i = tokens.size() - count; i < tokens.size(); ++i)
    nll.push_back(negative_log_likelihood(world.engine->logits(i - 1), tokens[i]));
  return nll;
}

TEST(Score, InExactModeEqualsAPlainDecodeOfTheSameTokens) {
  World world(3'000, 2);
  const auto session = world.open_with_text(World::settings());
  const std::vector<Token> more = tokens_of(world, filler_prose(900, 12));
  ASSERT_GT(more.size(), 130U);
  const Scored scored = must(session->score(more, {}));
  EXPECT_EQ(session->check_integrity(), "");
  std::vector<Token> all = session->stream();
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_EQ(scored.attended_tokens, static_cast<std::int64_t>(all.size()) - 1);
  const std::vector<double> plain = plainly(world, all, more.size());
  ASSERT_EQ(scored.nll.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(scored.nll[i], plain[i], 1e-4) << i;
}

TEST(Score, WithoutRetrievalEqualsAPlainDecodeOfSinksWindowAndContinuation) {
  World world;
  const auto session = world.open_with_text(World::settings());
  const std::vector<Token> more = tokens_of(world, filler_prose(900, 12));
  Question window;
  window.retrieve = false;
  const Scored scored = must(session->score(more, window));
  EXPECT_EQ(scored.blocks_read, 0);
  const std::vector<Token> stream = session->stream();
  const std::int64_t kept = scored.attended_tokens + 1 - static_cast<std::int64_t>(more.size());
  const std::int64_t sinks = world.calibration.reading.sinks;
  ASSERT_LE(kept, sinks + world.calibration.reading.recent);
  std::vector<Token> all(stream.begin(), stream.begin() + sinks);
  all.insert(all.end(), stream.end() - (kept - sinks), stream.end());
  all.insert(all.end(), more.begin(), more.end());
  const std::vector<double> plain = plainly(world, all, more.size());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(scored.nll[i], plain[i], 1e-4) << i;
}

TEST(Score, WhatTheTextSaidLongBeforeIsPredictedWithRetrievalAndNotWithout) {
  World world;
  const auto session = world.open(World::settings());
  // The text ends with a fact begun that stands in its middle.
  const Needle& needle = world.needles[2];
  const TextPart part{"book.txt", world.text + "\n" + needle.answer_prefix, SegmentKind::user};
  ASSERT_TRUE(session->append(std::span(&part, 1)));
  const std::vector<Token> answer = tokens_of(world, " " + needle.answer);
  Question how;
  const Scored with = must(session->score(answer, how));
  how.retrieve = false;
  const Scored without = must(session->score(answer, how));
  EXPECT_GT(with.blocks_read, 0);
  EXPECT_LT(sum(with), 0.5 * sum(without));
  EXPECT_GT(with.attended_tokens, without.attended_tokens);
  EXPECT_LE(with.attended_tokens, World::settings().hot_tokens);
}

TEST(Score, LeavesTheSessionAsItWas) {
  for (const std::size_t bytes : {std::size_t{3'000}, std::size_t{120'000}}) {
    World world(bytes, 2);
    const auto session = world.open_with_text(World::settings());
    const Result<Answer> before = session->ask(question_of(world.needles[1]));
    ASSERT_TRUE(before);
    const std::vector<StreamRange> blocks = session->blocks();
    const std::vector<Token> stream = session->stream();
    const std::vector<Token> more = tokens_of(world, filler_prose(900, 12));
    for (const bool retrieve : {true, false, true}) {
      Question how;
      how.retrieve = retrieve;
      const Scored first = must(session->score(more, how));
      EXPECT_EQ(session->check_integrity(), "");
      EXPECT_EQ(must(session->score(more, how)).nll, first.nll);
      EXPECT_EQ(session->check_integrity(), "");
      const Result<Answer> after = session->ask(question_of(world.needles[1]));
      ASSERT_TRUE(after);
      EXPECT_EQ(after->tokens, before->tokens);
      EXPECT_EQ(after->attended_tokens, before->attended_tokens);
      EXPECT_EQ(after->reused_tokens, session->stream_tokens());
      EXPECT_EQ(session->check_integrity(), "");
    }
    EXPECT_EQ(session->stream(), stream);
    EXPECT_EQ(session->blocks(), blocks);
  }
}

TEST(Score, OfAModelWithWindowedLayersLeavesTheSessionAsItWas) {
  ScriptedOptions windowed;
  windowed.windows = {64, 0};
  World world(120'000, 2, windowed);
  const auto session = world.open_with_text(World::settings());
  const Result<Answer> before = session->ask(question_of(world.needles[1]));
  ASSERT_TRUE(before);
  const std::vector<Token> more = tokens_of(world, filler_prose(900, 12));
  for (const bool retrieve : {true, false}) {
    Question how;
    how.retrieve = retrieve;
    EXPECT_EQ(must(session->score(more, how)).nll.size(), more.size());
    EXPECT_EQ(session->check_integrity(), "");
    const Result<Answer> after = session->ask(question_of(world.needles[1]));
    ASSERT_TRUE(after);
    EXPECT_EQ(after->tokens, before->tokens);
  }
}

TEST(Score, RefusesNothingToScoreAndWhatTheHotSetCannotHold) {
  World world;
  const auto session = world.open_with_text(World::settings());
  EXPECT_EQ(session->score({}, {}).error().code, ErrorCode::bad_argument);
  const std::array unknown = {Token{-1}};
  EXPECT_EQ(session->score(unknown, {}).error().code, ErrorCode::bad_argument);
  const std::vector<Token> longer = tokens_of(world, filler_prose(8'000, 4));
  EXPECT_EQ(session->score(longer, {}).error().code, ErrorCode::question_too_long);
  EXPECT_EQ(must(session->score(tokens_of(world, " of the town"), {})).nll.size(), 3U);
}

TEST(Score, AfterACancelItScoresTheSame) {
  World world;
  const auto session = world.open_with_text(World::settings());
  const std::vector<Token> more = tokens_of(world, filler_prose(900, 12));
  for (const bool retrieve : {true, false}) {
    Question how;
    how.retrieve = retrieve;
    const Scored whole = must(session->score(more, how));
    CancelFlag cancel;
    const ProgressSink stop = [&cancel](const Progress& p) { p.unit == "tokens" ? cancel.request() : void(); };
    const Result<Scored> stopped = session->score(more, how, stop, &cancel);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
    EXPECT_EQ(session->check_integrity(), "");
    EXPECT_EQ(must(session->score(more, how)).nll, whole.nll);
  }
}

}  // namespace
}  // namespace modeld
