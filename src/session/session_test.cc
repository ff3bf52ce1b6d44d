#include "session/session.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/scripted/embedder.h"
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

void expect_counts(const Answer& answer) {
  EXPECT_EQ(answer.prompt_tokens, answer.reused_tokens + answer.computed_tokens);
  EXPECT_EQ(answer.prompt_tokens, answer.attended_tokens + answer.cold_tokens + answer.dropped_tokens);
}

TEST(Session, AnswersFromAnyDepthOfATextFarBeyondTheHotSet) {
  World world;
  const auto session = world.open_with_text(World::settings());
  ASSERT_GT(session->stream_tokens(), 10 * 1536);
  for (const Needle& needle : world.needles) {
    const Answer answer = must(session->ask(question_of(needle)));
    EXPECT_TRUE(answer_begins(answer.text, needle.answer)) << needle.sentence << " → " << answer.text;
    EXPECT_FALSE(answer.exact);
    expect_counts(answer);
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(Session, WithoutRetrievalTheFactIsNotAnswered) {
  World world;
  const auto session = world.open_with_text(World::settings());
  Question question = question_of(world.needles[2]);
  question.retrieve = false;
  EXPECT_FALSE(answer_begins(must(session->ask(question)).text, world.needles[2].answer));
}

TEST(Session, StreamedIngestAnswersToo) {
  World world;
  world.calibration.reading.origin = KvOrigin::streamed;
  world.calibration.reading.stream_window = 384;
  const auto session = world.open_with_text(World::settings());
  for (const Needle& needle : world.needles) {
    const Answer answer = must(session->ask(question_of(needle)));
    EXPECT_TRUE(answer_begins(answer.text, needle.answer)) << needle.sentence << " → " << answer.text;
    expect_counts(answer);
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(Session, AShortTextIsAnsweredExactlyAndEqualsAPlainDecode) {
  World world(3'000, 2);
  const auto session = world.open_with_text(World::settings());
  const Question question = question_of(world.needles[1]);
  const Answer answer = must(session->ask(question));
  EXPECT_TRUE(answer.exact);
  EXPECT_EQ(answer.attended_tokens, answer.prompt_tokens);
  EXPECT_TRUE(answer_begins(answer.text, world.needles[1].answer)) << answer.text;
  // The same tokens through the bare engine.
  std::vector<Token> prompt = session->stream();
  const auto add = [&](std::string_view text, bool special) {
    const auto tokens = world.engine->tokenize(text, false, special);
    prompt.insert(prompt.end(), tokens->begin(), tokens->end());
  };
  add("\n\nQuestion: ", false);
  add(question.text, false);
  add("<|im_end|>\n<|im_start|>assistant\n", true);
  add(question.answer_prefix, false);
  ASSERT_EQ(static_cast<std::int64_t>(prompt.size()), answer.prompt_tokens);
  ASSERT_TRUE(world.engine->open_context({.cells = 1536}));
  std::vector<BatchToken> batch;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    batch.push_back({prompt[i], Place(static_cast<std::int32_t>(i)), 0, i + 1 == prompt.size()});
  }
  ASSERT_TRUE(world.engine->compute(batch));
  const auto logits = world.engine->logits(batch.size() - 1);
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), answer.tokens.at(0));
}

TEST(Session, ExactModeRefusesOverflowWithBothCounts) {
  World world;
  SessionSettings settings = World::settings();
  settings.context = ContextMode::exact;
  const auto session = world.open_with_text(settings);
  const auto answer = session->ask(question_of(world.needles[0]));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::context_overflow);
  EXPECT_GE(answer.error().numbers.size(), 2U);
}

TEST(Session, ATextWithinTheSinksHasNoBlocksAndIsAnsweredInEveryMode) {
  for (const ContextMode mode : {ContextMode::exact, ContextMode::auto_, ContextMode::focus}) {
    World world;
    world.text = "The gate code is 4711.";
    world.calibration.reading.sinks = 64;
    SessionSettings settings = World::settings();
    settings.context = mode;
    const auto session = world.open_with_text(settings);
    ASSERT_NE(session, nullptr);
    Question question;
    question.text = "What is the gate code?";
    const Answer answer = must(session->ask(question));
    EXPECT_TRUE(answer.retrieved.empty());
    EXPECT_EQ(answer.attended_tokens, answer.prompt_tokens);
    const auto passages = session->retrieve(question, 4);
    ASSERT_TRUE(passages) << to_text(passages.error());
    EXPECT_TRUE(passages->empty());
    const auto rankings = session->compare_selectors(question, 4);
    ASSERT_TRUE(rankings) << to_text(rankings.error());
    for (const SelectorRanking& ranking : *rankings) EXPECT_TRUE(ranking.blocks.empty()) << ranking.selector;
    EXPECT_TRUE(session->blocks().empty());
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(Session, ALongQuestionTurnsExactIntoExtendedAndNothingIsCut) {
  World world(5'500, 2);
  const auto session = world.open_with_text(World::settings());
  ASSERT_TRUE(must(session->ask(question_of(world.needles[0]))).exact);
  Question longer = question_of(world.needles[1]);
  longer.text = filler_prose(2'500, 99) + " " + longer.text;
  const Answer answer = must(session->ask(longer));
  EXPECT_FALSE(answer.exact);
  EXPECT_TRUE(answer_begins(answer.text, world.needles[1].answer)) << answer.text;
  expect_counts(answer);
  EXPECT_EQ(session->check_integrity(), "");
}

TEST(Session, TheSameQuestionGetsTheSameAnswerInAnyOrderOfQuestions) {
  World world;
  const auto session = world.open_with_text(World::settings());
  const Answer first = must(session->ask(question_of(world.needles[0])));
  static_cast<void>(must(session->ask(question_of(world.needles[4]))));
  const Answer again = must(session->ask(question_of(world.needles[0])));
  EXPECT_EQ(first.tokens, again.tokens);
  EXPECT_EQ(again.reused_tokens, session->stream_tokens());
  ASSERT_EQ(first.retrieved.size(), again.retrieved.size());
  for (std::size_t i = 0; i < first.retrieved.size(); ++i) {
    EXPECT_EQ(first.retrieved[i].range, again.retrieved[i].range);
    EXPECT_DOUBLE_EQ(first.retrieved[i].score, again.retrieved[i].score);
  }
}

TEST(Session, AFullStoreDropsBlocksSaysSoAndStillAnswers) {
  World world(120'000, 6, {}, 12 << 20U);
  const auto session = world.open_with_text(World::settings());
  std::int64_t dropped = 0;
  for (const Needle& needle : world.needles) {
    const Answer answer = must(session->ask(question_of(needle)));
    EXPECT_TRUE(answer_begins(answer.text, needle.answer)) << needle.sentence << " → " << answer.text;
    expect_counts(answer);
    dropped = answer.dropped_tokens;
    EXPECT_LE(world.store->usage().used_bytes(), world.store->usage().budget_bytes);
    EXPECT_EQ(session->check_integrity(), "");
  }
  EXPECT_GT(dropped, 1000);
}

TEST(Session, ABudgetThatCannotHoldTheIndexIsRefusedBeforeAnythingIsComputed) {
  World world(120'000, 6, {}, 1 << 20U);
  const auto session = world.open_with_text(World::settings());
  const auto plan = session->plan();
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::host_budget_exceeded);
}

TEST(Session, CancelledIngestGoesOnWhereItStoppedAndAnswersTheSame) {
  World world;
  const auto whole = world.open_with_text(World::settings());
  const Answer wanted = must(whole->ask(question_of(world.needles[3])));
  const auto session = world.open_with_text(World::settings());
  CancelFlag cancel;
  const auto stop_half_way = [&](const Progress& progress) {
    if (progress.done * 2 > progress.total) cancel.request();
  };
  const Status stopped = session->ingest(stop_half_way, &cancel);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_EQ(session->check_integrity(), "");
  const Answer answer = must(session->ask(question_of(world.needles[3])));
  EXPECT_EQ(answer.tokens, wanted.tokens);
  expect_counts(answer);
}

TEST(Session, AnEngineFailureLosesNoTextAndTheNextQuestionIsAnswered) {
  for (const std::int64_t fail_at : {1, 2, 3, 5, 20, 40, 60, 80, 81, 82, 83, 84, 85, 86, 90}) {
    ScriptedOptions options;
    options.fail_at_compute = fail_at;
    World world(60'000, 4, options);
    const auto session = world.open_with_text(World::settings());
    bool failed = false;
    for (const Needle& needle : world.needles) {
      auto answer = session->ask(question_of(needle));
      if (!answer) {
        EXPECT_EQ(answer.error().code, ErrorCode::engine_failed) << to_text(answer.error());
        EXPECT_FALSE(failed) << "only one failure was injected";
        failed = true;
        answer = session->ask(question_of(needle));
      }
      const Answer right = must(std::move(answer));
      EXPECT_TRUE(answer_begins(right.text, needle.answer)) << fail_at << ": " << right.text;
      expect_counts(right);
      EXPECT_EQ(session->check_integrity(), "") << fail_at;
    }
  }
}

TEST(Session, PinnedTextStaysHotAndWhatExceedsHalfIsReported) {
  World world;
  const auto session = world.open(World::settings());
  const std::vector<TextPart> parts = {
      {"rules.txt", "The house rule of the harbour is silence. " + filler_prose(9'000, 21), SegmentKind::pinned},
      {"book.txt", world.text, SegmentKind::user}};
  ASSERT_TRUE(session->append(parts));
  const Answer answer = must(session->ask(question_of(world.needles[1])));
  EXPECT_TRUE(answer_begins(answer.text, world.needles[1].answer)) << answer.text;
  EXPECT_GT(answer.pinned_cold_tokens, 0);
  expect_counts(answer);
  EXPECT_EQ(session->check_integrity(), "");
}

TEST(Session, PinnedTextThatFitsHalfTheHotSetIsAllHotAndNarrowsTheRecentWindow) {
  World world;
  for (const std::int32_t hot : {900, 1200, 1536}) {
    const auto session = world.open(World::settings(hot));
    const std::vector<TextPart> parts = {{"rules.txt", filler_prose(1'200, 21), SegmentKind::pinned},
                                         {"book.txt", world.text, SegmentKind::user}};
    ASSERT_TRUE(session->append(parts));
    const Answer answer = must(session->ask(question_of(world.needles[1])));
    EXPECT_EQ(answer.pinned_cold_tokens, 0) << hot;
    EXPECT_TRUE(answer_begins(answer.text, world.needles[1].answer)) << hot << ": " << answer.text;
    EXPECT_LE(answer.attended_tokens, hot);
    expect_counts(answer);
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(Session, PinnedTextThatIsColdIsReadLikeAnyOther) {
  World world;
  const auto session = world.open(World::settings());
  const std::vector<TextPart> parts = {{"book.txt", world.text, SegmentKind::pinned},
                                       {"end.txt", filler_prose(3'000, 8), SegmentKind::user}};
  ASSERT_TRUE(session->append(parts));
  for (const Needle& needle : world.needles) {
    const Answer answer = must(session->ask(question_of(needle)));
    EXPECT_TRUE(answer_begins(answer.text, needle.answer)) << needle.sentence << " → " << answer.text;
    EXPECT_LE(answer.pinned_cold_tokens, answer.cold_tokens + answer.dropped_tokens);
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(Session, WhatWasJustSaidIsReadDirectlyBeforeTheQuestionAndStandsAsBeforeAfterIt) {
  World world;
  // Six facts of one kind, all within the recent window: an older one that is read would be the wrong one.
  const std::vector<Needle> recent = make_needles(NeedleKind::lookalike, 12, 9);
  for (std::size_t i = 0; i < 6; ++i) world.text += "\n" + recent[i].sentence + " " + filler_prose(100, 20 + i);
  const auto session = world.open_with_text(World::settings());
  const Result<Answer> old = session->ask(question_of(world.needles[2]));
  ASSERT_TRUE(old) << to_text(old.error());
  int moved = 0;
  int right = 0;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 6; ++i) {
      const Result<Answer> answer = session->ask(question_of(recent[i]));
      ASSERT_TRUE(answer) << to_text(answer.error());
      right += answer_begins(answer->text, recent[i].answer);
      moved += std::any_of(answer->retrieved.begin(), answer->retrieved.end(), [&](const Passage& passage) {
        return passage.text.find(recent[i].answer) != std::string::npos;
      });
      EXPECT_EQ(answer->attended_tokens + answer->cold_tokens + answer->dropped_tokens, answer->prompt_tokens);
      EXPECT_EQ(session->check_integrity(), "");
    }
  }
  EXPECT_GE(moved, 10);
  EXPECT_GE(right, 10);
  // Nothing of it shows in what is asked afterwards.
  const Result<Answer> again = session->ask(question_of(world.needles[2]));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->tokens, old->tokens);
  EXPECT_EQ(again->attended_tokens, old->attended_tokens);
}

TEST(Session, TextAppendedLaterIsFoundAndTheOldIsReused) {
  World world;
  const auto session = world.open_with_text(World::settings());
  static_cast<void>(must(session->ask(question_of(world.needles[0]))));
  const std::int64_t before = session->stream_tokens();
  const TextPart more{"more.txt", "A new page. The access code for Atlantis is 90210. " + filler_prose(9'000, 5)};
  ASSERT_TRUE(session->append(std::span(&more, 1)));
  Question question;
  question.text = "What is the access code for Atlantis?";
  question.answer_prefix = "The access code for Atlantis is";
  question.answer_tokens_max = 4;
  const Answer answer = must(session->ask(question));
  EXPECT_TRUE(answer_begins(answer.text, "90210")) << answer.text;
  EXPECT_EQ(answer.reused_tokens, before);
  expect_counts(answer);
  EXPECT_EQ(session->check_integrity(), "");
}

TEST(Session, WhatReadingIsPredictedToTakeCountsRunUpsAndTheRecentWindow) {
  World world;
  world.calibration.prefill_tokens_per_second = 1000.0;
  const auto session = world.open_with_text(World::settings());
  const Result<IngestPlan> plan = session->plan();
  ASSERT_TRUE(plan);
  const Result<Answer> answer = session->ask(question_of(world.needles[0]));
  ASSERT_TRUE(answer) << to_text(answer.error());
  // The question is computed twice, and is no part of the reading.
  const std::int64_t question = answer->prompt_tokens - plan->stream_tokens;
  const auto computed = static_cast<double>(answer->computed_tokens + answer->recomputed_tokens - 2 * question);
  EXPECT_NEAR(plan->predicted_seconds * 1000.0, computed, 0.02 * computed);
}

TEST(Session, TextThatComesTwiceIsComputedOnceAndFoundInBothPlaces) {
  World world(30'000, 4);
  const std::string once = world.text;
  const auto alone = world.open_with_text(World::settings());
  const Answer first = must(alone->ask(question_of(world.needles[1])));
  world.text = once + once;
  const auto session = world.open_with_text(World::settings());
  ASSERT_TRUE(session->ingest());
  const std::vector<StreamRange> blocks = session->blocks();
  const Answer answer = must(session->ask(question_of(world.needles[1])));
  EXPECT_TRUE(answer_begins(answer.text, world.needles[1].answer)) << answer.text;
  expect_counts(answer);
  EXPECT_EQ(session->check_integrity(), "");
  // Of the repetition only the blocks around the seam are new.
  EXPECT_GT(session->stream_tokens(), 2 * alone->stream_tokens() - 64);
  EXPECT_LT(answer.computed_tokens, first.computed_tokens + 8 * 128);
  // Both copies have the same score, so both are ranked first.
  const auto ranked = session->retrieve(question_of(world.needles[1]), 2);
  ASSERT_TRUE(ranked && ranked->size() == 2);
  EXPECT_EQ((*ranked)[0].text, (*ranked)[1].text);
  EXPECT_NE((*ranked)[0].range, (*ranked)[1].range);
}

TEST(Session, TextThatComesTwiceIsComputedAgainWhereItsFirstCopyWasDropped) {
  World world(60'000, 4, {}, 9 << 20U);
  world.text += world.text;
  const auto session = world.open_with_text(World::settings());
  for (const Needle& needle : world.needles) {
    const Answer answer = must(session->ask(question_of(needle)));
    EXPECT_TRUE(answer_begins(answer.text, needle.answer)) << needle.sentence << " → " << answer.text;
    EXPECT_GT(answer.dropped_tokens, 0);
    expect_counts(answer);
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(Session, WhatIsBeingWrittenBringsTheBlockThatTheQuestionDidNotFind) {
  World world(120'000, 12);
  SessionSettings never = World::settings();
  never.reread.returns = 0;
  const auto session = world.open_with_text(World::settings());
  const auto without = world.open_with_text(never);
  int returned = 0;
  int right = 0;
  int right_without = 0;
  for (const Needle& needle : world.needles) {
    Question question = question_of(needle);
    question.text = "How does it go on?";  // the begun answer alone says what is wanted
    const Answer answer = must(session->ask(question));
    right += answer_begins(answer.text, needle.answer);
    returned += answer.returns > 0;
    EXPECT_LE(answer.returns, World::settings().reread.returns);
    expect_counts(answer);
    EXPECT_EQ(session->check_integrity(), "");
    const Answer missed = must(without->ask(question));
    right_without += answer_begins(missed.text, needle.answer);
    EXPECT_EQ(missed.returns, 0);
  }
  EXPECT_GE(returned, 6);
  EXPECT_GE(right, right_without + 3);
}

TEST(Session, WhatWasShownIsTheAnswerAndIsNeverTakenBack) {
  World world;
  const auto session = world.open_with_text(World::settings());
  for (const Needle& needle : world.needles) {
    Question question = question_of(needle);
    question.answer_prefix.clear();
    question.answer_tokens_max = 24;
    std::string shown;
    const auto answer = session->ask(question, [&shown](std::string_view piece) { shown += piece; });
    ASSERT_TRUE(answer) << to_text(answer.error());
    EXPECT_EQ(shown, answer->text);
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(Session, WithAnEmbedderWhatSharesNoWordWithTheQuestionIsFound) {
  World world;
  const std::string fact = "The old violin hangs behind the bakery.";
  world.text.insert(world.text.find(". ", world.text.size() / 2) + 2, fact + " ");
  const auto embedder = open_scripted_embedder({{"violin", "stradivarius"}, {"hangs", "dangles"}});
  Question question;
  question.text = "Which stradivarius dangles?";
  question.answer_tokens_max = 4;
  const auto holds_fact = [&](const Passage& passage) { return passage.text.find("violin") != std::string::npos; };
  for (const bool with : {false, true}) {
    SessionSettings settings = World::settings();
    if (with) settings.embedder = embedder.get();
    const auto session = world.open_with_text(settings);
    const Result<Answer> answer = session->ask(question);
    ASSERT_TRUE(answer) << to_text(answer.error());
    EXPECT_EQ(std::any_of(answer->retrieved.begin(), answer->retrieved.end(), holds_fact), with);
    EXPECT_EQ(session->check_integrity(), "");
    // Text that comes twice is embedded once and found in both places.
    const TextPart again{"again.txt", world.text, SegmentKind::user};
    ASSERT_TRUE(session->append(std::span(&again, 1)));
    ASSERT_TRUE(session->ask(question));
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(Session, SelectorsAreComparedByTheirOwnRankingsAndOursComesFirst) {
  World world;
  const auto embedder = open_scripted_embedder({});
  for (const bool with : {false, true}) {
    SessionSettings settings = World::settings();
    if (with) settings.embedder = embedder.get();
    const auto session = world.open_with_text(settings);
    const Question question = question_of(world.needles[3]);
    const auto compared = session->compare_selectors(question, 5);
    ASSERT_TRUE(compared) << to_text(compared.error());
    std::vector<std::string> selectors;
    for (const SelectorRanking& ranking : *compared) selectors.push_back(ranking.selector);
    EXPECT_EQ(selectors,
              with ? (std::vector<std::string>{"fused", "heads", "bm25", "embedder", "quest", "quest-16", "means"})
                   : (std::vector<std::string>{"fused", "heads", "bm25", "quest", "quest-16", "means"}));
    const auto ranked = session->retrieve(question, 5);
    ASSERT_TRUE(ranked);
    std::vector<StreamRange> ours;
    for (const Passage& passage : *ranked) ours.push_back(passage.range);
    EXPECT_EQ(compared->front().blocks, ours);
    const std::vector<StreamRange> blocks = session->blocks();
    for (const SelectorRanking& ranking : *compared) {
      EXPECT_LE(ranking.blocks.size(), 5U);
      for (const StreamRange& block : ranking.blocks)
        EXPECT_EQ(std::count(blocks.begin(), blocks.end(), block), 1) << ranking.selector;
    }
    // Raw products have any sign, so these rank whatever they are asked for.
    EXPECT_EQ(compared->back().blocks.size(), 5U);
    // Comparing leaves the session as it was.
    EXPECT_TRUE(answer_begins(must(session->ask(question)).text, world.needles[3].answer));
    EXPECT_EQ(session->check_integrity(), "");
  }
}

TEST(Session, InExactModeThereIsNothingToCompareSelectorsBy) {
  World world(3'000, 2);
  const auto session = world.open_with_text(World::settings());
  const auto compared = session->compare_selectors(question_of(world.needles[0]), 5);
  ASSERT_TRUE(compared) << to_text(compared.error());
  EXPECT_TRUE(compared->empty());
}

TEST(Session, PassagesNameTheirSourceAndLines) {
  World world;
  const auto session = world.open_with_text(World::settings());
  const Answer answer = must(session->ask(question_of(world.needles[2])));
  ASSERT_FALSE(answer.retrieved.empty());
  const bool found = std::any_of(answer.retrieved.begin(), answer.retrieved.end(), [&](const Passage& passage) {
    return passage.text.find(world.needles[2].sentence) != std::string::npos && passage.source == "book.txt" &&
           passage.line_begin >= 1 && passage.line_end >= passage.line_begin;
  });
  EXPECT_TRUE(found);
}

TEST(Session, AQuestionLongerThanHalfTheHotSetIsRefusedWithTheNumbers) {
  World world;
  const auto session = world.open_with_text(World::settings());
  Question question;
  question.text = filler_prose(8'000, 4);
  const auto answer = session->ask(question);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::question_too_long) << to_text(answer.error());
  EXPECT_TRUE(answer_begins(must(session->ask(question_of(world.needles[1]))).text, world.needles[1].answer));
}

}  // namespace
}  // namespace modeld
