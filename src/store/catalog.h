// The books of a state directory, in SQLite: sessions, the text they were given, their blocks, and which payloads are
// on disk.
//
// Durable: a transaction that returned is there after a power cut (WAL, synchronous=FULL); one that did not leaves no
//          trace. What is forgotten is overwritten (secure_delete).
// Errors:  disk_full, io_failed, state_locked, state_damaged (also for a text or block that has changed).
// Thread:  one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "stream/block.h"
#include "stream/manifest.h"
#include "stream/segment.h"
#include "stream/tokens.h"

namespace modeld {

/// A session as its row says.
struct SessionRow {
  std::int64_t id = 0;
  std::string name;
  Identity identity;
  /// How its blocks are made: the session's own JSON.
  std::string form;
  /// Seconds since 1970.
  std::int64_t created = 0;
  std::int64_t used = 0;
  /// Of the parts; what no block covers is not computed yet.
  std::int64_t tokens = 0;
  /// Tokens of the sinks and of the recall index; 0 until computed.
  std::int64_t sinks = 0;
  std::int64_t indexed = 0;
  /// The session's turns so far: what its blocks' last use counts in.
  std::uint64_t turn = 0;
  /// The session that holds what this one was before it was edited; it has no name. 0: none.
  std::int64_t former = 0;
};

/// One text of a session, as it was tokenised.
struct PartRow {
  std::string name;
  SegmentKind kind = SegmentKind::user;
  CacheClass cls = CacheClass::volatile_;
  StreamRange range;
  std::uint32_t header_bytes = 0;
  std::string text;
  std::vector<Token> tokens;
  /// Byte offset of each token in `text`, and one past the last.
  std::vector<std::uint32_t> offsets;
  std::vector<Boundary> boundaries;
  friend bool operator==(const PartRow&, const PartRow&) = default;
};

struct BlockRow {
  StreamRange range;
  std::uint32_t segment = 0;
  CacheClass cls = CacheClass::volatile_;
  KvOrigin origin = KvOrigin::isolated;
  BlockKey key;
  std::uint64_t last_use = 0;
  std::uint32_t fetches = 0;
  /// The meaning of its sentences, in the index's own form; empty without an embedder.
  std::vector<std::byte> meaning;
  friend bool operator==(const BlockRow&, const BlockRow&) = default;
};

/// A payload on disk.
struct PayloadRow {
  BlockKey key;
  std::int64_t bytes = 0;
};

/// A payload that a session keeps beside its blocks.
struct ExtraRow {
  std::int64_t slot = 0;
  BlockKey key;
};

/// A checksum of one piece of a session's recall index.
struct PieceRow {
  std::int64_t piece = 0;
  std::int64_t bytes = 0;
  Digest128 checksum;
};

class Catalog {
 public:
  /// Opens or makes the books in `file`. Errors also: state_damaged for a file of a later version.
  static Result<std::unique_ptr<Catalog>> open(const std::filesystem::path& file);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Those with a name.
  Result<std::vector<SessionRow>> sessions() const;
  /// Also those that are the former of another.
  Result<std::vector<SessionRow>> all_sessions() const;
  /// Errors also: session_missing.
  Result<SessionRow> session(std::string_view name) const;
  /// Errors also: session_exists.
  Result<SessionRow> add_session(std::string_view name, const Identity& identity, std::string_view form,
                                 std::int64_t now);
  /// A copy of all rows of `from` under another name. Errors also: session_exists.
  Result<SessionRow> copy_session(const SessionRow& from, std::string_view name, std::int64_t now);
  /// A session in place of `from`, with its name and other text; `from` becomes its former, without a name.
  Result<SessionRow> replace_session(const SessionRow& from, std::span<const PartRow> parts, std::int64_t now);
  Status forget_former(std::int64_t session);
  /// Forgets a session with its text and blocks; payloads stay until they are forgotten.
  Status remove_session(std::int64_t id);

  // ── a session's content ──────────────────────────────────────────────────────────────────────────────────────────

  /// Parts that follow the session's last ones.
  Status add_parts(std::int64_t session, std::span<const PartRow> parts);
  Result<std::vector<PartRow>> parts(std::int64_t session) const;
  Result<std::vector<BlockRow>> blocks(std::int64_t session) const;
  Result<std::vector<PieceRow>> pieces(std::int64_t session) const;
  /// What of the recall index fills no piece yet.
  Result<std::vector<std::byte>> tail(std::int64_t session) const;

  /// All that a durable point adds, as one transaction.
  struct Progress {
    std::int64_t session = 0;
    std::int64_t sinks = 0;
    std::int64_t indexed = 0;
    std::span<const BlockRow> blocks;
    std::span<const PieceRow> pieces;
    std::span<const std::byte> tail;
    std::span<const PayloadRow> payloads;
  };
  Status add_progress(const Progress& progress);
  /// Forgets all blocks of a session and what is known of its index; its text stays. They are to be made anew under
  /// `identity` and `form`.
  Status begin_again(std::int64_t session, const Identity& identity, std::string_view form);
  /// Writes down that a session was used, and which blocks were fetched once more, each by where it begins.
  Status touch(std::int64_t session, std::uint64_t turn, std::int64_t now, std::span<const StreamPos> fetched);

  // ── payloads ─────────────────────────────────────────────────────────────────────────────────────────────────────

  Result<std::vector<PayloadRow>> payloads() const;
  Status remove_payloads(std::span<const BlockKey> keys);
  /// A payload that a session keeps beside its blocks; the one that had the slot before is its no more.
  Status set_extra(std::int64_t session, std::int64_t slot, const PayloadRow& payload);
  Result<std::vector<ExtraRow>> extras(std::int64_t session) const;
  /// Payloads that no session has.
  Result<std::vector<PayloadRow>> orphans() const;
  /// The payloads of blocks, least dear to the sessions that have them first: volatile before pinned, few fetches
  /// before many, old use before new, and of equals the end of a text before its beginning.
  Result<std::vector<PayloadRow>> by_worth() const;

  /// Writes what the journal holds into the books, and empties it.
  Status settle();
  /// Empty if the file's structure is sound.
  Result<std::string> check_integrity() const;

 private:
  struct Impl;
  explicit Catalog(std::unique_ptr<Impl> impl);
  [[nodiscard]] Status check_free(std::string_view name) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace modeld
