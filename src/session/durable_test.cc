// Sessions that outlive their process: they go on as if nothing had happened, whatever happened.
#include "session/durable.h"

#include <gtest/gtest.h>
#include <stdlib.h>  // mkdtemp
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <ostream>

#include "engine/scripted/embedder.h"
#include "session/session_fixture.h"
#include "store/fault.h"

namespace modeld {
namespace {

using testing::all_of;
using testing::question_of;
using testing::Said;
using testing::World;

constexpr std::int64_t kRoomy = std::int64_t{1} << 30;

/// A world whose sessions live in a directory; reopen() is what a restart of the process is.
struct DurableWorld : World {
  explicit DurableWorld(std::size_t bytes = 60'000) : World(bytes, 4) {
    std::string name = (std::filesystem::temp_directory_path() / "modeld-durable-XXXXXX").string();
    directory = std::filesystem::path(::mkdtemp(name.data())) / "state";
    // One engine is read with in all processes: words that it has met keep their tokens.
    for (const Needle& needle : needles) static_cast<void>(engine->tokenize(needle.question, false, false));
  }
  ~DurableWorld() {
    set_fault_hook({});
    close();
    std::filesystem::remove_all(directory.parent_path());
  }
  void close() {
    store.reset();
    state.reset();
    engine->close_context();
  }
  Status reopen(std::int64_t disk = kRoomy, std::int64_t ram = kRoomy) {
    close();
    MODELD_TRY(state, State::open(directory, disk));
    store = std::make_unique<ColdStore>(ram, state.get());
    return {};
  }
  Result<std::unique_ptr<Session>> resume(SessionSettings settings = World::settings()) {
    settings.state = state.get();
    settings.name = "book";
    return Session::create(*engine, *store, calibration, settings);
  }
  Status append(Session& session) const {
    const TextPart part{"book.txt", text, SegmentKind::user};
    return session.append(std::span(&part, 1));
  }
  [[nodiscard]] bool in(const Session& session) const {
    const std::vector<TextPart> parts = session.parts();
    return parts.size() == 1 && parts.front().name == "book.txt" && parts.front().text == text;
  }

  std::unique_ptr<State> state;
  std::filesystem::path directory;
};

void expect_no_storage_error(Session& session) {
  const auto error = session.take_storage_error();
  EXPECT_FALSE(error) << to_text(*error);
}

struct Way {
  std::string name;
  KvOrigin origin = KvOrigin::isolated;
  bool embedder = false;
  bool small_ram = false;
  std::optional<KvType> cold_type = std::nullopt;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class DurableWays : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    world.calibration.reading.origin = GetParam().origin;
    world.calibration.reading.stream_window = 384;
    if (GetParam().embedder) settings.embedder = embedder.get();
    settings.cold_type = GetParam().cold_type;
  }
  DurableWorld world;
  std::unique_ptr<Embedder> embedder = open_scripted_embedder();
  SessionSettings settings = World::settings();
};

TEST_P(DurableWays, AResumedSessionSaysWhatTheUnstoppedOneSaysAndComputesNoTokenOfItsText) {
  const std::int64_t ram = GetParam().small_ram ? std::int64_t{2} << 20 : kRoomy;
  Said before;
  Answer again;
  {
    ASSERT_TRUE(world.reopen(kRoomy, ram));
    const auto session = world.resume(settings);
    ASSERT_TRUE(session) << to_text(session.error());
    ASSERT_TRUE(world.append(**session));
    before = all_of(**session, world.needles);
    again = *(*session)->ask(question_of(world.needles[0]));
    expect_no_storage_error(**session);
  }
  ASSERT_TRUE(world.reopen(kRoomy, ram));
  const auto session = world.resume(settings);
  ASSERT_TRUE(session) << to_text(session.error());
  EXPECT_TRUE(world.in(**session));
  const auto plan = (*session)->plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->done_tokens, plan->stream_tokens);
  const auto first = (*session)->ask(question_of(world.needles[0]));
  ASSERT_TRUE(first) << to_text(first.error());
  EXPECT_EQ(first->computed_tokens, again.computed_tokens);
  EXPECT_EQ(first->recomputed_tokens, again.recomputed_tokens);
  EXPECT_EQ(first->dropped_tokens, 0);
  EXPECT_EQ(all_of(**session, world.needles), before);
  expect_no_storage_error(**session);
}

TEST_P(DurableWays, TextThatIsAppendedAfterARestartIsTheSameStreamAsWithoutOne) {
  const std::size_t half = world.text.find("\n", world.text.size() / 2) + 1;
  const std::vector<TextPart> texts = {{"one.txt", world.text.substr(0, half), SegmentKind::user},
                                       {"two.txt", world.text.substr(half), SegmentKind::user}};
  Said expected;
  {
    const auto session = world.open(settings);
    for (const TextPart& part : texts) {
      ASSERT_TRUE(session->append(std::span(&part, 1)));
      ASSERT_TRUE(session->ingest());
    }
    expected = all_of(*session, world.needles);
  }
  for (const TextPart& part : texts) {
    ASSERT_TRUE(world.reopen());
    const auto session = world.resume(settings);
    ASSERT_TRUE(session) << to_text(session.error());
    ASSERT_TRUE((*session)->append(std::span(&part, 1)));
    ASSERT_TRUE((*session)->ingest());
  }
  ASSERT_TRUE(world.reopen());
  const auto session = world.resume(settings);
  ASSERT_TRUE(session) << to_text(session.error());
  EXPECT_EQ(all_of(**session, world.needles), expected);
}

INSTANTIATE_TEST_SUITE_P(Ways, DurableWays,
                         ::testing::Values(Way{"isolated"}, Way{"streamed", KvOrigin::streamed},
                                           Way{"embedder", KvOrigin::isolated, true},
                                           Way{"from_disk", KvOrigin::isolated, false, true},
                                           Way{"packed", KvOrigin::isolated, false, true, KvType::q8_0}),
                         [](const auto& way) { return way.param.name; });

TEST(Durable, AShortSessionInExactModeGoesOnToo) {
  DurableWorld world(3'000);
  Said before;
  {
    ASSERT_TRUE(world.reopen());
    const auto session = world.resume();
    ASSERT_TRUE(session);
    ASSERT_TRUE(world.append(**session));
    before = all_of(**session, world.needles);
  }
  ASSERT_TRUE(world.reopen());
  const auto session = world.resume();
  ASSERT_TRUE(session) << to_text(session.error());
  EXPECT_EQ(all_of(**session, world.needles), before);
}

TEST(Durable, PackedKvTakesHalfTheDiskAndTheFormatMayChangeFromRunToRun) {
  DurableWorld world;
  std::int64_t whole = 0;
  {
    ASSERT_TRUE(world.reopen());
    auto session = world.resume();
    ASSERT_TRUE(world.append(**session));
    ASSERT_TRUE((*session)->ingest());
    session->reset();
    whole = world.state->usage().payload_bytes;
    world.close();
    std::filesystem::remove_all(world.directory);
  }
  SessionSettings settings = World::settings();
  settings.cold_type = KvType::q8_0;
  ASSERT_TRUE(world.reopen());
  auto session = world.resume(settings);
  ASSERT_TRUE(session) << to_text(session.error());
  ASSERT_TRUE(world.append(**session));
  const Said said = all_of(**session, world.needles);
  EXPECT_LT(world.state->usage().payload_bytes, whole * 6 / 10);
  session->reset();
  ASSERT_TRUE(world.reopen());
  const auto unpacked = world.resume();
  ASSERT_TRUE(unpacked) << to_text(unpacked.error());
  EXPECT_EQ(all_of(**unpacked, world.needles).answers, said.answers);
}

TEST(Durable, OnlyHalfPrecisionIsParkedInAnotherFormat) {
  World world;
  SessionSettings settings = World::settings();
  settings.kv_type = KvType::q8_0;
  settings.cold_type = KvType::q4_0;
  const auto refused = Session::create(*world.engine, *world.store, world.calibration, settings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported_kv_type);
}

/// Everything a process does with a session, from nothing or from where an earlier one was stopped.
Status live(DurableWorld& world) {
  MODELD_TRY_VOID(world.reopen());
  MODELD_TRY(const std::unique_ptr<Session> session, world.resume());
  if (!world.in(*session)) MODELD_TRY_VOID(world.append(*session));
  MODELD_TRY_VOID(session->ingest());
  MODELD_TRY(const Answer answer, session->ask(question_of(world.needles[0])));
  return answer.tokens.empty() ? fail(ErrorCode::internal, "No answer.") : Status{};
}

/// Runs `life` in a process of its own that is killed at its n-th step; false if it came to its end.
template <typename Life>
bool killed_at(int n, const Life& life) {
  const pid_t child = ::fork();
  if (child == 0) {
    int step = 0;
    set_fault_hook([&step, n](FaultPoint) {
      if (step++ == n) ::kill(::getpid(), SIGKILL);
      return 0;
    });
    ::_exit(life() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return true;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return false;
}

TEST(Durable, KilledAtAnyStepNothingIsLostAndTheAnswersAreThoseOfAnUnkilledRun) {
  DurableWorld world(16'000);
  Said expected;
  {
    const auto session = world.open_with_text(World::settings(512));
    expected = all_of(*session, world.needles);
  }
  int kills = 0;
  for (int n = 0;; ++n) {
    std::filesystem::remove_all(world.directory);
    if (!killed_at(n, [&] { return live(world).has_value(); })) break;
    ++kills;
    ASSERT_TRUE(world.reopen()) << n;
    const auto damages = world.state->verify();
    ASSERT_TRUE(damages) << to_text(damages.error());
    EXPECT_TRUE(damages->empty()) << n << ": " << damages->front().what;
    auto session = world.resume(World::settings(512));
    ASSERT_TRUE(session) << n << ": " << to_text(session.error());
    if (!world.in(**session)) {
      ASSERT_TRUE(world.append(**session)) << n;
    }
    EXPECT_EQ(all_of(**session, world.needles), expected) << n;
    expect_no_storage_error(**session);
    session->reset();
    world.close();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(kills, 100);
}

TEST(Durable, KilledAgainAndAgainASessionStillComesToItsEnd) {
  DurableWorld world(16'000);
  Said expected;
  {
    const auto session = world.open_with_text(World::settings());
    expected = all_of(*session, world.needles);
  }
  // Each process gets a little farther than the one before it.
  int kills = 0;
  for (int n = 3; killed_at(n, [&] { return live(world).has_value(); }); n += 11) ++kills;
  EXPECT_GT(kills, 5);
  ASSERT_TRUE(world.reopen());
  const auto session = world.resume();
  ASSERT_TRUE(session) << to_text(session.error());
  EXPECT_EQ(all_of(**session, world.needles), expected);
}

TEST(Durable, WhatCannotBeWrittenIsSaidTheSessionGoesOnAndTheNextDurablePointHasItAll) {
  for (const int error : {ENOSPC, EIO}) {
    DurableWorld world;
    Said before;
    {
      ASSERT_TRUE(world.reopen());
      auto session = world.resume();
      ASSERT_TRUE(session);
      int step = 0;
      set_fault_hook([&step, error](FaultPoint) { return ++step > 20 ? error : 0; });
      ASSERT_TRUE(world.append(**session));
      before = all_of(**session, world.needles);
      const auto told = (*session)->take_storage_error();
      ASSERT_TRUE(told);
      EXPECT_EQ(told->code, error == ENOSPC ? ErrorCode::disk_full : ErrorCode::io_failed) << to_text(*told);
      set_fault_hook({});
      ASSERT_TRUE((*session)->ingest());
      expect_no_storage_error(**session);
      session->reset();
    }
    ASSERT_TRUE(world.reopen());
    const auto session = world.resume();
    ASSERT_TRUE(session) << to_text(session.error());
    const auto plan = (*session)->plan();
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->done_tokens, plan->stream_tokens);
    EXPECT_EQ(all_of(**session, world.needles), before);
  }
}

TEST(Durable, KilledAtAnyStepOfAnEditTheSessionHasTheTextBeforeOrAfterItAndNothingIsComputedTwice) {
  DurableWorld world(16'000);
  const std::string edited =
      world.text.substr(0, 8'000) + " A heron came by and stood there. " + world.text.substr(8'000);
  const auto edit = [&edited](Session& session) {
    const TextPart part{"book.txt", edited, SegmentKind::user};
    return session.replace(std::span(&part, 1));
  };
  Said expected;
  std::int64_t fresh_payloads = 0;
  {
    ASSERT_TRUE(world.reopen());
    auto session = world.resume();
    ASSERT_TRUE(edit(**session));
    expected = all_of(**session, world.needles);
    fresh_payloads = world.state->usage().payload_bytes;
    session->reset();
  }
  const auto change = [&] {
    const Status opened = world.reopen();
    auto session = world.resume();
    const bool done = opened && session && edit(**session) && (*session)->ingest();
    session->reset();
    return done;
  };
  int after = 0;
  for (int n = 0;; ++n) {
    world.close();
    std::filesystem::remove_all(world.directory);
    ASSERT_TRUE(live(world));
    world.close();
    const bool killed = killed_at(n, change);
    ASSERT_TRUE(world.reopen()) << n;
    const auto damages = world.state->verify();
    ASSERT_TRUE(damages && damages->empty()) << n;
    auto session = world.resume();
    ASSERT_TRUE(session) << n << ": " << to_text(session.error());
    const std::string text = (*session)->parts().front().text;
    EXPECT_TRUE(text == world.text || text == edited) << n;
    after += text == edited ? 1 : 0;
    if (text == edited) {
      const auto answer = (*session)->ask(question_of(world.needles[0]));
      ASSERT_TRUE(answer) << n;
      EXPECT_LE(answer->computed_tokens, 5 * 128 + 64) << n;
    } else {
      ASSERT_TRUE(edit(**session)) << n;
    }
    EXPECT_EQ(all_of(**session, world.needles), expected) << n;
    expect_no_storage_error(**session);
    session->reset();
    // What the edit left behind is gone.
    EXPECT_EQ(world.state->books().all_sessions()->size(), 1U) << n;
    EXPECT_EQ(world.state->usage().payload_bytes, fresh_payloads) << n;
    if (!killed || ::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(after, 10);
}

/// A session that was read and asked, then closed.
Said make_one(DurableWorld& world, std::int64_t disk = kRoomy) {
  EXPECT_TRUE(world.reopen(disk));
  auto session = world.resume();
  EXPECT_TRUE(session);
  EXPECT_TRUE(world.append(**session));
  Said said = all_of(**session, world.needles);
  session->reset();
  world.close();
  return said;
}

void flip(const std::filesystem::path& file, std::int64_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(at);
  const int byte = stream.get();
  stream.seekp(at);
  stream.put(static_cast<char>(byte ^ 4));
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

TEST(Durable, ADamagedIndexIsSaidAndMadeAgainFromTheText) {
  DurableWorld world;
  const Said before = make_one(world);
  for (const auto& file : files_below(world.directory / "index")) flip(file, 1000);
  ASSERT_TRUE(world.reopen());
  const auto session = world.resume();
  ASSERT_TRUE(session) << to_text(session.error());
  const auto told = (*session)->take_storage_error();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->code, ErrorCode::state_damaged);
  EXPECT_EQ((*session)->plan()->done_tokens, 0);
  EXPECT_EQ(all_of(**session, world.needles), before);
  EXPECT_TRUE(world.state->verify()->empty());
}

TEST(Durable, DamagedKvIsSaidAndComputedAgain) {
  DurableWorld world;
  const Said before = make_one(world);
  for (const auto& file : files_below(world.directory / "kv")) flip(file, 500);
  ASSERT_TRUE(world.reopen());
  EXPECT_EQ(world.state->verify()->size(), files_below(world.directory / "kv").size());
  const auto session = world.resume();
  ASSERT_TRUE(session) << to_text(session.error());
  EXPECT_EQ(all_of(**session, world.needles), before);
  const auto told = (*session)->take_storage_error();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->code, ErrorCode::state_damaged);
}

TEST(Durable, KvBeyondTheDiskBudgetIsGivenUpAndComputedAgain) {
  DurableWorld world;
  const Said before = make_one(world);
  ASSERT_TRUE(world.reopen());
  const std::int64_t used = world.state->usage().used_bytes();
  ASSERT_TRUE(world.reopen(used * 2 / 3, std::int64_t{2} << 20));
  EXPECT_LE(world.state->usage().used_bytes(), used * 2 / 3);
  const auto session = world.resume();
  ASSERT_TRUE(session) << to_text(session.error());
  EXPECT_EQ(all_of(**session, world.needles), before);
  EXPECT_LE(world.state->usage().used_bytes(), used * 2 / 3);
}

TEST(Durable, WhatWasMadeOtherwiseIsRefusedWithTheReason) {
  DurableWorld world;
  make_one(world);
  ASSERT_TRUE(world.reopen());
  SessionSettings settings = World::settings();
  settings.kv_type = KvType::q8_0;
  auto refused = world.resume(settings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::payload_invalid);
  EXPECT_NE(refused.error().message.find("KV type f16, this is q8_0"), std::string::npos) << refused.error().message;
  const auto embedder = open_scripted_embedder();
  settings = World::settings();
  settings.embedder = embedder.get();
  refused = world.resume(settings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_argument);
  world.engine = open_scripted({.seed = 2});
  refused = world.resume();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::payload_invalid);
  EXPECT_NE(refused.error().message.find("model"), std::string::npos);
}

TEST(Durable, OtherRetrievalHeadsMakeTheIndexAnew) {
  DurableWorld world;
  make_one(world);
  world.calibration.heads = {{HeadRef{1, 1}, 0.9}};
  ASSERT_TRUE(world.reopen());
  const auto session = world.resume();
  ASSERT_TRUE(session) << to_text(session.error());
  const auto told = (*session)->take_storage_error();
  ASSERT_TRUE(told);
  EXPECT_NE(told->message.find("retrieval heads"), std::string::npos);
  ASSERT_TRUE((*session)->ingest());
  EXPECT_EQ((*session)->check_integrity(), "");
  expect_no_storage_error(**session);
}

TEST(Durable, TheFormOfBlocksSurvivesAsJsonAndNothingElseIsTakenForOne) {
  const BlockForm form{KvOrigin::streamed, 64, 32, 512, "MiniLM"};
  const auto back = form_from_json(to_json(form));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, form);
  for (const char* bad : {"", "{}", "[]", "null", R"({"origin":"isolated"})",
                          R"({"origin":"other","sinks":1,"run_up":1,"stream_window":1,"embedder":""})",
                          R"({"origin":"isolated","sinks":-1,"run_up":1,"stream_window":1,"embedder":""})",
                          R"({"origin":"isolated","sinks":1e99,"run_up":1,"stream_window":1,"embedder":""})",
                          R"({"origin":"isolated","sinks":1,"run_up":1,"stream_window":99999999999,"embedder":""})",
                          R"({"origin":"isolated","sinks":1,"run_up":1,"stream_window":1,"embedder":7})"}) {
    const auto refused = form_from_json(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::state_damaged);
  }
}

}  // namespace
}  // namespace modeld
