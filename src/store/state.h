// A state directory: what outlives a process. It is the disk tier of the cold store, and it holds the sessions.
//
// On disk:  lock (one owner at a time), books.sqlite (catalog.h), kv/ab/<key>.kv (kv_file.h), index/<session>.keys
//           (pieces of the recall index, one after the other).
// Order:    files are written and renamed, then synced, then named by the books, in one commit a group. So whatever the
//           books name is there; what they do not name is removed when the directory is opened.
// Budget:   payload files, index files and the books together; a payload is given up, least valuable first, before
//           anything is written that would not fit. Texts and indexes are never given up, they are refused.
// Thread:   one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "store/catalog.h"
#include "store/durable_file.h"
#include "store/payload_tier.h"

namespace modeld {

struct DiskUsage {
  std::int64_t budget_bytes = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t index_bytes = 0;
  std::int64_t book_bytes = 0;
  std::uint64_t drops = 0;
  /// Payloads that were not as they had been written, and were given up.
  std::uint64_t damaged = 0;
  [[nodiscard]] std::int64_t used_bytes() const { return payload_bytes + index_bytes + book_bytes; }
};

/// One thing that is not as it was written.
struct Damage {
  /// Empty for what belongs to no session.
  std::string session;
  std::string what;
};

class State final : public PayloadTier {
 public:
  /// Takes the directory, making it if it is missing. A budget of 0: half of what is free on its disk, and what the
  /// directory takes already. Errors: state_locked, io_failed, disk_full, state_damaged.
  static Result<std::unique_ptr<State>> open(const std::filesystem::path& directory, std::int64_t budget_bytes);
  ~State() override;

  /// Under which identity payloads are written and read from here on: an engine's with its open context.
  void set_identity(const Digest128& identity) { identity_ = identity; }

  [[nodiscard]] bool holds(const BlockKey& key) const override { return payloads_.contains(key); }
  Status write(const BlockKey& key, const KvPayload& payload) override;
  Result<KvPayload> read(const BlockKey& key) override;

  [[nodiscard]] const Catalog& books() const { return *catalog_; }
  Result<SessionRow> add_session(std::string_view name, const Identity& identity, std::string_view form);
  /// A session that begins as a copy of another; no payload is copied, and nothing computed.
  Result<SessionRow> branch(const SessionRow& from, std::string_view name);
  /// A session in place of `from`, with other text: `from` stays as its former, whose payloads are kept for it.
  Result<SessionRow> replace_session(const SessionRow& from, std::span<const PartRow> parts);
  /// What a session was before it was edited, the last edit first.
  Result<std::vector<SessionRow>> formers(const SessionRow& session) const;
  Status forget_formers(const SessionRow& session);
  /// Forgets a session, and what no other one has of it: its files are removed.
  Status remove_session(const SessionRow& session);

  Status add_parts(std::int64_t session, std::span<const PartRow> parts);
  /// What a session has computed since its last durable point.
  struct Progress {
    std::int64_t session = 0;
    std::int64_t sinks = 0;
    std::int64_t indexed = 0;
    std::span<const BlockRow> blocks;
    /// The index's whole pieces from `first_piece` on, `piece_bytes` each, and what fills none yet (kept in the books,
    /// so that nothing that has been named is ever written over).
    std::int64_t first_piece = 0;
    std::int64_t piece_bytes = 0;
    std::span<const std::byte> pieces;
    std::span<const std::byte> tail;
  };
  /// Makes all that was written durable, then names it in the books. After an error the books are as they were; the
  /// same progress may be given again.
  Status commit(const Progress& progress);
  /// Keeps a payload beside a session's blocks, durable at once.
  Status keep_extra(std::int64_t session, std::int64_t slot, const BlockKey& key, const KvPayload& payload);
  /// Writes down that a session was asked, and what was fetched for it, each by where its block begins.
  Status touch(std::int64_t session, std::uint64_t turn, std::span<const StreamPos> fetched);
  /// Forgets all blocks of a session and what is known of its index, which are to be made under `identity` and `form`.
  Status begin_again(std::int64_t session, const Identity& identity, std::string_view form);
  /// A session's index: its pieces, one after the other, and the tail. Errors: state_damaged when one is not as its
  /// checksum says.
  Result<std::vector<std::byte>> read_index(const SessionRow& session) const;

  /// Reads everything; what is damaged is told, and nothing changed.
  Result<std::vector<Damage>> verify() const;
  [[nodiscard]] DiskUsage usage() const;
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

 private:
  State(std::filesystem::path directory, FileHandle lock, std::unique_ptr<Catalog> catalog);
  Status take_stock(std::int64_t budget_bytes);
  Status make_room(std::int64_t bytes);
  Status make_room_for(std::span<const PartRow> parts);
  Status remove_orphans();
  Status remove_rows(const SessionRow& session);
  Status forget_payloads(std::span<const PayloadRow> payloads);
  void count_books();
  [[nodiscard]] std::filesystem::path kv_path(const BlockKey& key) const;
  [[nodiscard]] std::filesystem::path index_path(std::int64_t session) const;
  [[nodiscard]] Result<KvPayload> read_payload(const BlockKey& key, const Digest128* identity) const;

  std::filesystem::path directory_;
  FileHandle lock_;
  std::unique_ptr<Catalog> catalog_;
  Digest128 identity_;
  std::unordered_map<BlockKey, std::int64_t> payloads_;  // bytes of each file
  std::vector<PayloadRow> fresh_;                        // written, not in the books yet
  DiskUsage usage_;
};

}  // namespace modeld
