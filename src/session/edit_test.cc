// The stream is edited: what comes again is not computed again, and nothing else changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "engine/scripted/embedder.h"
#include "session/session_fixture.h"

namespace modeld {
namespace {

using testing::all_of;
using testing::question_of;
using testing::Said;
using testing::World;

TextPart book(std::string text) { return {"book.txt", std::move(text), SegmentKind::user}; }

Status set_text(Session& session, const std::string& text) {
  const TextPart part = book(text);
  return session.replace(std::span(&part, 1));
}

/// What a session says that never knew another text.
Said fresh(World& world, const std::vector<TextPart>& parts, const SessionSettings& settings) {
  const auto session = world.open(settings);
  EXPECT_TRUE(session->append(parts));
  Said said = all_of(*session, world.needles);
  return said;
}

struct Edit {
  std::string name;
  double depth = 0.0;
  std::size_t removed = 0;
  std::string inserted;
};

void PrintTo(const Edit& edit, std::ostream* out) { *out << edit.name; }

std::string edited_by(const std::string& text, const Edit& edit) {
  // At a word's end, and not in a planted fact.
  std::size_t at = text.find(". ", static_cast<std::size_t>(edit.depth * static_cast<double>(text.size()))) + 2;
  return text.substr(0, at) + edit.inserted + text.substr(at + edit.removed);
}

std::string words(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i % 9 == 8 ? "came. The heron" + std::to_string(i) : "reed" + std::to_string(i)) + " ";
  return text;
}

class Edits : public ::testing::TestWithParam<Edit> {};

TEST_P(Edits, OnlyWhatChangedIsComputedAndTheAnswersAreThoseOfAFreshSession) {
  World world;
  const SessionSettings settings = World::settings();
  const std::string edited = edited_by(world.text, GetParam());
  const Said expected = fresh(world, {book(edited)}, settings);
  const auto session = world.open_with_text(settings);
  ASSERT_TRUE(session->ask(question_of(world.needles[0])));
  ASSERT_TRUE(set_text(*session, edited));
  const auto answer = session->ask(question_of(world.needles[0]));
  ASSERT_TRUE(answer) << to_text(answer.error());
  const auto question = static_cast<std::int64_t>(answer->prompt_tokens - session->stream_tokens());
  const std::int64_t inserted = static_cast<std::int64_t>(GetParam().inserted.size()) / 4;
  EXPECT_LE(answer->computed_tokens - question, inserted + 4 * 128);
  EXPECT_EQ(answer->computed_tokens + answer->reused_tokens, answer->prompt_tokens);
  EXPECT_GE(answer->reused_after_edit_tokens, session->stream_tokens() * 9 / 10);
  EXPECT_EQ(all_of(*session, world.needles), expected);
}

INSTANTIATE_TEST_SUITE_P(Depths, Edits,
                         ::testing::Values(Edit{"replaced_at_a_tenth", 0.1, 800, words(150)},
                                           Edit{"replaced_in_the_middle", 0.5, 800, words(150)},
                                           Edit{"replaced_near_the_end", 0.9, 800, words(150)},
                                           Edit{"one_word_inserted", 0.4, 0, "heron "},
                                           Edit{"a_passage_deleted", 0.6, 600, ""}),
                         [](const auto& edit) { return edit.param.name; });

TEST(Edit, WithAnEmbedderToo) {
  World world;
  const auto embedder = open_scripted_embedder();
  SessionSettings settings = World::settings();
  settings.embedder = embedder.get();
  const std::string edited = edited_by(world.text, {"", 0.5, 300, words(20)});
  const Said expected = fresh(world, {book(edited)}, settings);
  const auto session = world.open_with_text(settings);
  ASSERT_TRUE(session->ingest());
  ASSERT_TRUE(set_text(*session, edited));
  EXPECT_EQ(all_of(*session, world.needles), expected);
}

TEST(Edit, AStreamedStreamKeepsWhatStandsBeforeTheEdit) {
  World world;
  world.calibration.reading.origin = KvOrigin::streamed;
  world.calibration.reading.stream_window = 384;
  const SessionSettings settings = World::settings();
  const auto session = world.open_with_text(settings);
  ASSERT_TRUE(session->ingest());
  const std::string edited = edited_by(world.text, {"", 0.8, 300, words(20)});
  ASSERT_TRUE(set_text(*session, edited));
  const auto answer = session->ask(question_of(world.needles[0]));
  ASSERT_TRUE(answer) << to_text(answer.error());
  EXPECT_GE(answer->reused_after_edit_tokens, session->stream_tokens() * 7 / 10);
  EXPECT_LE(answer->reused_after_edit_tokens, session->stream_tokens() * 8 / 10);
  const Said said = all_of(*session, world.needles);
  World other;
  other.calibration = world.calibration;
  EXPECT_EQ(said.answers, fresh(other, {book(edited)}, settings).answers);
}

TEST(Edit, AChangeInTheSinksComputesEverythingAgain) {
  World world;
  const SessionSettings settings = World::settings();
  const auto session = world.open_with_text(settings);
  ASSERT_TRUE(session->ask(question_of(world.needles[0])));
  const std::string edited = "Reeds. " + world.text;
  const Said expected = fresh(world, {book(edited)}, settings);
  ASSERT_TRUE(set_text(*session, edited));
  const auto answer = session->ask(question_of(world.needles[0]));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->reused_after_edit_tokens, 0);
  EXPECT_GE(answer->computed_tokens, session->stream_tokens());
  EXPECT_EQ(all_of(*session, world.needles), expected);
}

TEST(Edit, InExactModeWhatStandsBeforeTheEditStays) {
  World world(3'000, 2);
  const SessionSettings settings = World::settings();
  const std::string edited = edited_by(world.text, {"", 0.7, 0, "And a heron came. "});
  const Said expected = fresh(world, {book(edited)}, settings);
  const auto session = world.open_with_text(settings);
  ASSERT_TRUE(session->ask(question_of(world.needles[0])));
  ASSERT_TRUE(set_text(*session, edited));
  const auto answer = session->ask(question_of(world.needles[0]));
  ASSERT_TRUE(answer) << to_text(answer.error());
  EXPECT_TRUE(answer->exact);
  EXPECT_LE(answer->computed_tokens, answer->prompt_tokens / 2);
  EXPECT_GE(answer->reused_tokens, answer->prompt_tokens / 2);
  EXPECT_EQ(all_of(*session, world.needles), expected);
}

TEST(Edit, FromExactToExtendedAndBackEachAnswersAsIfItHadAlwaysBeenSo) {
  World world;
  const SessionSettings settings = World::settings();
  const std::string brief = world.text.substr(0, 2'000);
  const Said expected = fresh(world, {book(world.text)}, settings);
  const auto session = world.open(settings);
  ASSERT_TRUE(set_text(*session, brief));
  Question question;
  question.text = "Where does the heron stand?";
  question.answer_tokens_max = 6;
  const auto before = session->ask(question);
  ASSERT_TRUE(before);
  EXPECT_TRUE(before->exact);
  ASSERT_TRUE(set_text(*session, world.text));
  EXPECT_EQ(all_of(*session, world.needles), expected);
  ASSERT_TRUE(set_text(*session, brief));
  const auto after = session->ask(question);
  ASSERT_TRUE(after) << to_text(after.error());
  EXPECT_TRUE(after->exact);
  EXPECT_EQ(after->tokens, before->tokens);
  EXPECT_EQ(session->check_integrity(), "");
}

TEST(Edit, SeveralEditsInARowTakeOverFromAllFormsThatWereComputed) {
  World world;
  const SessionSettings settings = World::settings();
  const auto session = world.open_with_text(settings);
  ASSERT_TRUE(session->ingest());
  const std::string once = edited_by(world.text, {"", 0.3, 100, words(10)});
  const std::string twice = edited_by(once, {"", 0.7, 100, words(12)});
  const Said expected = fresh(world, {book(twice)}, settings);
  ASSERT_TRUE(set_text(*session, once));
  ASSERT_TRUE(set_text(*session, twice));
  const auto answer = session->ask(question_of(world.needles[0]));
  ASSERT_TRUE(answer);
  EXPECT_GE(answer->reused_after_edit_tokens, session->stream_tokens() * 9 / 10);
  EXPECT_EQ(all_of(*session, world.needles), expected);
}

TEST(Edit, ATextThatCannotBeTakenLeavesTheStreamAsItWas) {
  World world;
  const auto session = world.open_with_text(World::settings());
  const Said before = all_of(*session, world.needles);
  const auto refused = set_text(*session, "  \n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::text_empty);
  EXPECT_FALSE(session->replace({}));
  EXPECT_EQ(all_of(*session, world.needles), before);
}

TEST(Edit, MemoryOfWhatTheStreamWasIsGivenBack) {
  World world;
  const auto session = world.open_with_text(World::settings());
  ASSERT_TRUE(session->ingest());
  const StoreUsage before = world.store->usage();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(set_text(*session, edited_by(world.text, {"", 0.2 + 0.1 * i, 0, words(3)})));
    ASSERT_TRUE(session->ingest());
  }
  ASSERT_TRUE(set_text(*session, world.text));
  ASSERT_TRUE(session->ingest());
  const StoreUsage after = world.store->usage();
  EXPECT_EQ(after.payload_bytes, before.payload_bytes);
  EXPECT_EQ(after.token_bytes, before.token_bytes);
}

TEST(Edit, PartsInAnotherOrderAreTakenOverButForWhereTheyMeet) {
  World world;
  const SessionSettings settings = World::settings();
  const std::size_t third = world.text.find("\n", world.text.size() / 3) + 1;
  const std::size_t two = world.text.find("\n", 2 * world.text.size() / 3) + 1;
  const std::vector<TextPart> parts = {{"a.txt", world.text.substr(0, third)},
                                       {"b.txt", world.text.substr(third, two - third)},
                                       {"c.txt", world.text.substr(two)}};
  const std::vector<TextPart> moved = {parts[0], parts[2], parts[1]};
  const Said expected = fresh(world, moved, settings);
  const auto session = world.open(settings);
  ASSERT_TRUE(session->append(parts));
  ASSERT_TRUE(session->ingest());
  ASSERT_TRUE(session->replace(moved));
  const auto answer = session->ask(question_of(world.needles[0]));
  ASSERT_TRUE(answer);
  EXPECT_GE(answer->reused_after_edit_tokens, session->stream_tokens() * 9 / 10);
  EXPECT_EQ(all_of(*session, world.needles), expected);
}

}  // namespace
}  // namespace modeld
