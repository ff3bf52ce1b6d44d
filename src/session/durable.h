// One session's place in a state directory, and how far it has been written there.
//
// Durable: text as soon as save() returned after it was appended, blocks with their KV, index and meaning in groups.
// Failure: what cannot be written, or is not as it was written, is told by take_error(). The session goes on: what was
//          not written is tried again by the next save().
// Thread:  the session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "plan/reading.h"
#include "recall/block_index.h"
#include "session/stream_text.h"
#include "store/cold_store.h"
#include "store/state.h"

namespace modeld {

/// KV that is kept beside a session's blocks, so that it need not be computed again after a restart.
enum class KeptSlot : std::uint8_t { sinks, recent };

/// What a session has done so far. `blocks`: those of `index`, parked in `store`.
struct DoneStream {
  const StreamText& text;
  std::span<const Block> blocks;
  const BlockIndex& index;
  const ColdStore& store;
  SessionId id;
};

/// Blocks as they were stored, with the keys of all their tokens and the sinks'.
struct StoredBlocks {
  std::vector<BlockRow> blocks;
  std::vector<std::byte> index;
  std::int64_t tokens = 0;
  std::int64_t sinks = 0;
};

/// How a session's blocks are made: what must stay as it was when it goes on.
struct BlockForm {
  KvOrigin origin = KvOrigin::isolated;
  std::int32_t sinks = 0;
  std::int32_t run_up = 0;
  std::int32_t stream_window = 0;
  /// Name of the embedder; empty without one.
  std::string embedder;
  friend bool operator==(const BlockForm&, const BlockForm&) = default;
};
BlockForm form_of(const ReadingPolicy& policy, std::string_view embedder);
std::string to_json(const BlockForm& form);
/// Errors: state_damaged for anything that to_json() does not write.
Result<BlockForm> form_from_json(std::string_view json);

class Durable {
 public:
  /// The session of this name, or a new one. Errors also: payload_invalid for one that another model, engine or KV type
  /// has made, bad_argument for one made with another embedder.
  static Result<std::unique_ptr<Durable>> open(State& state, std::string_view name, const Identity& identity,
                                               const BlockForm& form);

  [[nodiscard]] const BlockForm& form() const { return form_; }
  [[nodiscard]] std::uint64_t turn() const { return row_.turn; }
  /// Seconds since the last save().
  [[nodiscard]] double waited() const { return since_written_.seconds(); }
  /// Blocks that are durable, or were read back.
  [[nodiscard]] std::size_t blocks() const { return blocks_; }

  Result<std::vector<PartRow>> take_parts();
  /// Blocks with their index. Errors: state_damaged where they do not fit each other or one has changed.
  Result<StoredBlocks> take_blocks();
  /// What the stream's forms before its last edits had, newest first: empty unless an edit was not computed to its end.
  Result<std::vector<StoredBlocks>> take_formers();
  void forget_formers();
  /// Forgets all blocks: they are to be computed again.
  Status begin_again();
  /// The stream has been replaced: the next save() writes its text and blocks in place of those that are there, which
  /// stay as a former stream.
  void replace();

  void save(const DoneStream& done);
  /// Writes down a turn, and what was fetched for it.
  void touch(std::uint64_t turn, std::span<const StreamPos> fetched);

  [[nodiscard]] bool keeps(const BlockKey& key) const { return state_.holds(key); }
  /// Read back; kept for this session from here on, whichever kept it before.
  std::optional<KvPayload> kept(KeptSlot slot, const BlockKey& key);
  void keep(KeptSlot slot, const BlockKey& key, const KvPayload& payload);

  void note(Error error) { error_ = std::move(error); }
  /// The last that went wrong since this was asked before.
  std::optional<Error> take_error() { return std::exchange(error_, std::nullopt); }

 private:
  Durable(State& state, SessionRow row, Identity identity, BlockForm form)
      : state_(state), row_(std::move(row)), identity_(std::move(identity)), form_(std::move(form)) {}

  [[nodiscard]] Result<StoredBlocks> read_blocks(const SessionRow& row) const;
  Status write(const DoneStream& done);
  void note(const Status& status);

  State& state_;
  SessionRow row_;  // sinks and indexed as far as they are durable
  Identity identity_;
  BlockForm form_;
  std::size_t parts_ = 0;
  std::size_t blocks_ = 0;
  bool replaced_ = false;
  std::optional<Error> error_;
  Stopwatch since_written_;
};

}  // namespace modeld
