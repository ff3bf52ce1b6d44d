#include "store/state.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "store/copy_session.h"
#include "store/fault.h"

namespace modeld {
namespace {

constexpr std::int64_t kRoomy = 64 << 20;
constexpr Digest128 kIdentity{7, 8};
constexpr std::string_view kSecret = "the heron waits at the weir";

class StateTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "modeld-state-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = std::filesystem::path(name) / "state";
  }
  void TearDown() override {
    set_fault_hook({});
    std::filesystem::remove_all(directory_.parent_path());
  }
  Result<std::unique_ptr<State>> open(std::int64_t budget = kRoomy) const {
    auto state = State::open(directory_, budget);
    if (state) (*state)->set_identity(kIdentity);
    return state;
  }
  std::vector<std::filesystem::path> files(std::string_view folder) const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_ / folder))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
  std::filesystem::path directory_;
};

KvPayload payload(int n, std::size_t bytes = 5000) {
  KvPayload payload;
  payload.places = {Place(64), Place(164)};
  payload.data.assign(bytes, static_cast<std::byte>(n));
  return payload;
}

BlockKey key(int n) { return {static_cast<std::uint64_t>(n), 99}; }

PartRow part(std::string_view text = kSecret) {
  PartRow part;
  part.name = "weir.txt";
  part.range = {StreamPos(0), StreamPos(1000)};
  part.text = text;
  part.tokens = {1, 2, 3};
  part.offsets = {0, 4, 9, 27};
  part.boundaries = {Boundary::word, Boundary::none, Boundary::sentence};
  return part;
}

BlockRow block(int n, CacheClass cls = CacheClass::volatile_) {
  BlockRow block;
  block.range = {StreamPos(100 * n), StreamPos(100 * n + 100)};
  block.cls = cls;
  block.key = key(n);
  block.meaning = {std::byte{1}, std::byte{2}};
  return block;
}

constexpr std::int64_t kPiece = 64;

/// Writes blocks [first, past) with their payloads and as many pieces of index, and names them.
Status add_blocks(State& state, std::int64_t session, int first, int past) {
  std::vector<BlockRow> blocks;
  std::vector<std::byte> pieces;
  for (int n = first; n < past; ++n) {
    MODELD_TRY_VOID(state.write(key(n), payload(n)));
    blocks.push_back(block(n));
    pieces.insert(pieces.end(), kPiece, static_cast<std::byte>(n));
  }
  State::Progress progress;
  progress.session = session;
  progress.sinks = 64;
  progress.indexed = std::int64_t{100} * past;
  progress.blocks = blocks;
  progress.first_piece = first;
  progress.piece_bytes = kPiece;
  progress.pieces = pieces;
  const std::vector<std::byte> tail(3, static_cast<std::byte>(past));
  progress.tail = tail;
  return state.commit(progress);
}

/// Whether blocks [0, count) of a session are there, whole, with their index.
testing::AssertionResult whole(State& state, const SessionRow& session, std::size_t count) {
  const auto blocks = state.books().blocks(session.id);
  if (!blocks) return testing::AssertionFailure() << to_text(blocks.error());
  if (blocks->size() != count) return testing::AssertionFailure() << blocks->size() << " blocks";
  for (std::size_t n = 0; n < count; ++n) {
    if ((*blocks)[n] != block(static_cast<int>(n))) return testing::AssertionFailure() << "block " << n << " differs";
    const auto got = state.read((*blocks)[n].key);
    if (!got) return testing::AssertionFailure() << to_text(got.error());
    if (got->data != payload(static_cast<int>(n)).data) return testing::AssertionFailure() << "payload " << n;
  }
  const auto index = state.read_index(session);
  if (!index) return testing::AssertionFailure() << to_text(index.error());
  const std::size_t expected = count == 0 ? 0 : count * kPiece + 3;
  if (index->size() != expected) return testing::AssertionFailure() << index->size() << " bytes of index";
  for (std::size_t n = 0; n < count; ++n)
    if ((*index)[n * kPiece] != static_cast<std::byte>(n)) return testing::AssertionFailure() << "piece " << n;
  const auto damages = state.verify();
  if (!damages) return testing::AssertionFailure() << to_text(damages.error());
  if (!damages->empty()) return testing::AssertionFailure() << damages->front().what;
  return testing::AssertionSuccess();
}

TEST_F(StateTest, WhatWasCommittedIsThereAfterARestartAndWhatWasNotIsRemoved) {
  {
    const auto state = open();
    ASSERT_TRUE(state) << to_text(state.error());
    const auto session = (*state)->add_session("book", Identity{}, "{}");
    ASSERT_TRUE(session);
    ASSERT_TRUE((*state)->add_parts(session->id, std::vector{part()}));
    ASSERT_TRUE(add_blocks(**state, session->id, 0, 3));
    ASSERT_TRUE((*state)->write(key(50), payload(50)));
    EXPECT_TRUE((*state)->holds(key(50)));
    EXPECT_EQ(files("kv").size(), 4U);
  }
  const auto state = open();
  ASSERT_TRUE(state) << to_text(state.error());
  EXPECT_FALSE((*state)->holds(key(50)));
  EXPECT_EQ(files("kv").size(), 3U);
  const auto session = (*state)->books().session("book");
  ASSERT_TRUE(session);
  EXPECT_TRUE(whole(**state, *session, 3));
  EXPECT_EQ((*state)->books().parts(session->id).value(), std::vector{part()});
  EXPECT_EQ(session->tokens, 1000);
  EXPECT_EQ((*state)->books().session("film").error().code, ErrorCode::session_missing);
  EXPECT_EQ((*state)->add_session("book", Identity{}, "{}").error().code, ErrorCode::session_exists);
}

TEST_F(StateTest, FilesAreTheOwnersAlone) {
  const auto state = open();
  ASSERT_TRUE((*state)->write(key(1), payload(1)));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
    struct stat found{};
    ASSERT_EQ(::stat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 077U, 0U) << entry.path();
  }
}

TEST_F(StateTest, HasOneOwnerAtATime) {
  auto first = open();
  ASSERT_TRUE(first);
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::state_locked);
  ASSERT_TRUE((*first)->write(key(1), payload(1)));
  first->reset();
  EXPECT_TRUE(open());
}

TEST_F(StateTest, NeverTakesMoreThanItsBudgetAndGivesUpTheLeastDear) {
  const std::int64_t books = open().value()->usage().used_bytes();
  const auto state = open(books + (1 << 19));
  const auto session = (*state)->add_session("book", Identity{}, "{}").value();
  for (int n = 0; n < 100; ++n) {
    ASSERT_TRUE(add_blocks(**state, session.id, n, n + 1)) << n;
    const DiskUsage usage = (*state)->usage();
    ASSERT_LE(usage.used_bytes(), usage.budget_bytes);
  }
  EXPECT_GT((*state)->usage().drops, 0U);
  // Of equals the beginning of the text stays.
  EXPECT_TRUE((*state)->holds(key(0)));
  EXPECT_EQ((*state)->verify().value().size(), 0U);
  const auto refused = (*state)->add_parts(session.id, std::vector{part(std::string(1 << 20, 'x'))});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::disk_budget_exceeded);
}

TEST_F(StateTest, ABranchSharesAllPayloadsAndOutlivesItsOrigin) {
  const auto state = open();
  const auto session = (*state)->add_session("book", Identity{}, "{}").value();
  ASSERT_TRUE((*state)->add_parts(session.id, std::vector{part()}));
  ASSERT_TRUE(add_blocks(**state, session.id, 0, 3));
  const std::int64_t before = (*state)->usage().payload_bytes;
  const auto branch = (*state)->branch((*state)->books().session("book").value(), "film");
  ASSERT_TRUE(branch) << to_text(branch.error());
  EXPECT_EQ((*state)->usage().payload_bytes, before);
  ASSERT_TRUE((*state)->remove_session(session));
  EXPECT_TRUE(whole(**state, *branch, 3));
  EXPECT_EQ((*state)->books().parts(branch->id).value(), std::vector{part()});
}

TEST_F(StateTest, ARemovedSessionLeavesNoByteOfItsTextOrKv) {
  const auto state = open();
  const auto session = (*state)->add_session("book", Identity{}, "{}").value();
  ASSERT_TRUE((*state)->add_parts(session.id, std::vector{part()}));
  ASSERT_TRUE(add_blocks(**state, session.id, 0, 3));
  ASSERT_TRUE((*state)->remove_session((*state)->books().session("book").value()));
  EXPECT_TRUE(files("kv").empty());
  EXPECT_TRUE(files("index").empty());
  EXPECT_EQ((*state)->usage().payload_bytes, 0);
  EXPECT_EQ((*state)->usage().index_bytes, 0);
  for (const std::filesystem::path& file : files(".")) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    EXPECT_EQ(bytes.find(kSecret), std::string::npos) << file;
  }
}

TEST_F(StateTest, APayloadThatChangedIsFoundRefusedAndGivenUp) {
  auto state = open();
  const auto session = (*state)->add_session("book", Identity{}, "{}").value();
  ASSERT_TRUE(add_blocks(**state, session.id, 0, 3));
  const std::filesystem::path file = files("kv").front();
  {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(1000);
    out.put('\x55');
  }
  const auto damages = (*state)->verify();
  ASSERT_EQ(damages->size(), 1U);
  EXPECT_EQ(damages->front().session, "book");
  int refused = 0;
  for (int n = 0; n < 3; ++n) {
    const auto got = (*state)->read(key(n));
    if (got) continue;
    ++refused;
    EXPECT_EQ(got.error().code, ErrorCode::state_damaged);
    EXPECT_FALSE((*state)->holds(key(n)));
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ((*state)->usage().damaged, 1U);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(StateTest, AFlippedBitInTextOrIndexIsFound) {
  {
    auto state = open();
    const auto session = (*state)->add_session("book", Identity{}, "{}").value();
    ASSERT_TRUE((*state)->add_parts(session.id, std::vector{part()}));
    ASSERT_TRUE(add_blocks(**state, session.id, 0, 3));
    ASSERT_TRUE((*state)->remove_session((*state)->add_session("other", Identity{}, "{}").value()));  // settles
  }
  const auto flip = [](const std::filesystem::path& file, std::string_view where) {
    std::ifstream in(file, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    const std::size_t at = where.empty() ? 70 : bytes.find(where);
    ASSERT_NE(at, std::string::npos);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    std::ofstream(file, std::ios::binary) << bytes;
  };
  flip(directory_ / "books.sqlite", kSecret);
  flip(files("index").front(), "");
  const auto state = open();
  const auto damages = (*state)->verify();
  ASSERT_TRUE(damages) << to_text(damages.error());
  EXPECT_EQ(damages->size(), 2U);
  const auto session = (*state)->books().session("book").value();
  EXPECT_EQ((*state)->books().parts(session.id).error().code, ErrorCode::state_damaged);
  EXPECT_EQ((*state)->read_index(session).error().code, ErrorCode::state_damaged);
}

TEST_F(StateTest, ALinkInAPayloadsPlaceIsNotFollowed) {
  auto state = open();
  ASSERT_TRUE((*state)->write(key(1), payload(1)));
  const std::filesystem::path file = files("kv").front();
  const std::filesystem::path elsewhere = directory_.parent_path() / "elsewhere";
  std::filesystem::rename(file, elsewhere);
  std::filesystem::create_symlink(elsewhere, file);
  EXPECT_FALSE((*state)->read(key(1)));
  EXPECT_TRUE(std::filesystem::exists(elsewhere));
}

/// Three groups of blocks; tells how many are durable as it goes.
Status work(State& state, const std::function<void(int)>& durable) {
  auto session = state.books().session("book");
  if (!session) session = state.add_session("book", Identity{}, "{}");
  if (!session) return tl::unexpected(session.error());
  if (session->tokens == 0) MODELD_TRY_VOID(state.add_parts(session->id, std::vector{part()}));
  MODELD_TRY(const std::vector<BlockRow> done, state.books().blocks(session->id));
  for (int n = static_cast<int>(done.size()); n < 6; n += 2) {
    MODELD_TRY_VOID(add_blocks(state, session->id, n, n + 2));
    durable(n + 2);
  }
  return {};
}

TEST_F(StateTest, KilledAtAnyPointItHasWhatItSaidAndGoesOn) {
  bool finished = false;
  int kills = 0;
  for (int at = 0; !finished; ++at) {
    std::filesystem::remove_all(directory_);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int left = at;
      set_fault_hook([&](FaultPoint) {
        if (left-- == 0) ::kill(::getpid(), SIGKILL);
        return 0;
      });
      auto state = open();
      const bool good = state && work(**state, [&](int count) {
                          const char byte = static_cast<char>(count);
                          if (::write(ends[1], &byte, 1) != 1) ::_exit(2);
                        });
      ::_exit(good ? 0 : 1);
    }
    ::close(ends[1]);
    int said = 0;
    for (char byte = 0; ::read(ends[0], &byte, 1) == 1;) said = byte;
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    finished = WIFEXITED(status);
    ASSERT_TRUE(!finished || WEXITSTATUS(status) == 0);
    kills += finished ? 0 : 1;

    const auto state = open();
    ASSERT_TRUE(state) << "killed at " << at << ": " << to_text(state.error());
    if (const auto session = (*state)->books().session("book")) {
      const auto blocks = (*state)->books().blocks(session->id);
      ASSERT_GE(static_cast<int>(blocks->size()), said) << "killed at " << at;
      ASSERT_TRUE(whole(**state, *session, blocks->size())) << "killed at " << at;
    } else {
      ASSERT_EQ(said, 0) << "killed at " << at;
    }
    ASSERT_TRUE(work(**state, [](int) {})) << "killed at " << at;
    ASSERT_TRUE(whole(**state, (*state)->books().session("book").value(), 6)) << "killed at " << at;
  }
  EXPECT_GT(kills, 30);
}

TEST_F(StateTest, AfterAnyFailedStepItGoesOnWhereItWas) {
  for (const int error : {ENOSPC, EIO}) {
    bool finished = false;
    for (int at = 0; !finished; ++at) {
      std::filesystem::remove_all(directory_);
      auto state = open();
      ASSERT_TRUE(state);
      int left = at;
      set_fault_hook([&](FaultPoint) { return left-- == 0 ? error : 0; });
      const Status worked = work(**state, [](int) {});
      finished = worked.has_value() && left >= 0;
      if (!worked) {
        EXPECT_EQ(worked.error().code, error == ENOSPC ? ErrorCode::disk_full : ErrorCode::io_failed) << at;
      }
      set_fault_hook({});
      const Status again = work(**state, [](int) {});
      ASSERT_TRUE(again) << "failed at " << at << ": " << to_text(again.error());
      ASSERT_TRUE(whole(**state, (*state)->books().session("book").value(), 6)) << "failed at " << at;
    }
  }
}

TEST_F(StateTest, ACopiedSessionIsWholeAndNeedsTheOtherDirectoryNoMore) {
  const std::filesystem::path elsewhere = directory_.parent_path() / "elsewhere";
  {
    const auto from = open();
    ASSERT_TRUE(from);
    auto session = (*from)->add_session("book", Identity{}, "{}");
    ASSERT_TRUE((*from)->add_parts(session->id, std::vector{part()}));
    (*from)->set_identity(Identity{}.digest());
    ASSERT_TRUE(add_blocks(**from, session->id, 0, 5));
    ASSERT_TRUE((*from)->keep_extra(session->id, 1, key(70), payload(70)));
    ASSERT_TRUE((*from)->touch(session->id, 9, std::vector{StreamPos(200)}));
    session = (*from)->books().session("book");
    const auto to = State::open(elsewhere, kRoomy);
    ASSERT_TRUE(to);
    ASSERT_TRUE(copy_session(**from, *session, **to, "copy"));
    const auto again = copy_session(**from, *session, **to, "copy");
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::session_exists);
  }
  std::filesystem::remove_all(directory_);
  const auto to = State::open(elsewhere, kRoomy);
  ASSERT_TRUE(to);
  (*to)->set_identity(Identity{}.digest());
  const auto session = (*to)->books().session("copy");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->turn, 9U);
  EXPECT_EQ((*to)->books().parts(session->id)->front(), part());
  EXPECT_EQ((*to)->books().blocks(session->id)->at(2).fetches, 1U);
  EXPECT_TRUE((*to)->read(key(70)));
  EXPECT_EQ((*to)->books().extras(session->id)->front().slot, 1);
  EXPECT_EQ((*to)->books().blocks(session->id)->size(), 5U);
  for (int n = 0; n < 5; ++n) EXPECT_TRUE((*to)->read(key(n))) << n;
  EXPECT_TRUE((*to)->verify()->empty());
}

TEST_F(StateTest, ACopyThatFailsAtAnyStepLeavesNoSession) {
  const std::filesystem::path elsewhere = directory_.parent_path() / "elsewhere";
  const auto from = open();
  ASSERT_TRUE(from);
  auto session = (*from)->add_session("book", Identity{}, "{}");
  ASSERT_TRUE((*from)->add_parts(session->id, std::vector{part()}));
  (*from)->set_identity(Identity{}.digest());
  ASSERT_TRUE(add_blocks(**from, session->id, 0, 3));
  session = (*from)->books().session("book");
  for (int n = 0;; ++n) {
    const auto to = State::open(elsewhere, kRoomy);
    ASSERT_TRUE(to);
    int step = 0;
    // One step fails; those that clean up after it do not.
    set_fault_hook([&step, n](FaultPoint) { return step++ == n ? ENOSPC : 0; });
    const Status copied = copy_session(**from, *session, **to, "copy");
    set_fault_hook({});
    if (copied) break;
    EXPECT_TRUE((*to)->books().sessions()->empty()) << n;
    ASSERT_LT(n, 200);
  }
}

}  // namespace
}  // namespace modeld
