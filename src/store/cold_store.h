// R3: the cold store. The KV of everything that was computed, in host RAM, addressed by content, found by session and
// range.
//
// Invariants: - budget first: a payload is admitted only when it fits, by dropping others if the policy allows; never
// over;
//             - a dropped block keeps its tokens: it can be recomputed; nothing else is ever lost;
//             - index and tokens are charged to the same budget;
//             - a payload is counted once, however many sessions share it, until the last pointer to it is gone: one
//             that a
//               caller holds is never chosen for a drop, and after erase() it stays counted until the caller lets go;
//             - bytes are counted, not estimated: check_integrity() recounts;
//             - with a tier below, a payload is written there as soon as it is put: what leaves RAM is not lost.
// Counted:    payload_bytes = data.size() of each live payload; token_bytes = 4 bytes a token and
// record_overhead_bytes() a
//             record; charged_bytes = what charge() was told. A payload handed to put() counts once it is kept.
// Cost:       lookups O(log n). A drop ranks all n payloads, so that drops come in batches of at least 1 % of the
// budget. Thread:     one thread at a time, for the pointers handed out too (their release changes the counts).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "store/payload_tier.h"
#include "stream/manifest.h"
#include "stream/segment.h"
#include "stream/tokens.h"

namespace modeld {

struct SessionId {
  std::uint64_t value = 0;
  friend auto operator<=>(const SessionId&, const SessionId&) = default;
};

struct BlockRecord {
  BlockKey key;
  StreamRange range;
  CacheClass cls = CacheClass::volatile_;
  KvOrigin origin = KvOrigin::isolated;
  std::uint64_t last_use = 0;
  std::uint32_t fetches = 0;
  /// In RAM or in the tier below.
  bool has_payload = false;
  /// What it takes of RAM; 0 where it is only in the tier below.
  std::int64_t payload_bytes = 0;
};

struct StoreUsage {
  std::int64_t budget_bytes = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t token_bytes = 0;
  /// Charged by the recall index and the like.
  std::int64_t charged_bytes = 0;
  /// Tokens of all records with (in RAM or below) and without payload; what sessions share counts in each of them.
  std::int64_t cold_tokens = 0;
  std::int64_t dropped_tokens = 0;
  /// Payloads that left RAM after they had been kept there.
  std::uint64_t drops = 0;
  [[nodiscard]] std::int64_t used_bytes() const { return payload_bytes + token_bytes + charged_bytes; }
};

class ColdStore {
 public:
  /// A budget below 0 is 0. `below`, if any, outlives the store.
  explicit ColdStore(std::int64_t budget_bytes, PayloadTier* below = nullptr);
  ~ColdStore();
  ColdStore(const ColdStore&) = delete;
  ColdStore& operator=(const ColdStore&) = delete;

  /// The id of another session.
  SessionId new_session();

  /// What a record costs beside its tokens and payload: the nodes of the books, derived from their sizes.
  static std::int64_t record_overhead_bytes();

  /// Records a block of a session with its tokens, and its payload if the budget allows (after dropping less valuable
  /// ones). A payload that is already there under `key` is shared. Ranges of one session do not overlap. Empty
  /// `payload.data` means that there is none. Tokens come before payloads: any payload that nobody holds is dropped for
  /// them if need be. Returns the record; has_payload tells whether the payload was kept. Errors, which change nothing:
  /// host_budget_exceeded when not even the tokens fit; engine_misuse for an overlapping or empty range, or when the
  /// numbers of tokens or of the payload's places are not range.size().
  Result<BlockRecord> put(SessionId session, StreamRange range, CacheClass cls, KvOrigin origin, const BlockKey& key,
                          std::span<const Token> tokens, KvPayload payload, std::uint64_t now);

  /// The payload, or nothing if it was dropped or never kept. One from below is kept in RAM again where others that
  /// nobody holds make room for it; one that is not as it was written counts as dropped. Valid as long as the pointer
  /// is held, drops included. Counts as a fetch at `now`, dropped or not. `range` is exactly a record's.
  std::shared_ptr<const KvPayload> fetch(SessionId session, StreamRange range, std::uint64_t now);
  /// Gives a dropped block its payload back (recomputed), in all sessions that share it; nothing to do if it is there.
  /// Errors: engine_misuse for a range without a record or a payload of another size; host_budget_exceeded when it does
  /// not fit without dropping more valuable ones.
  Status restore(SessionId session, StreamRange range, KvPayload payload, std::uint64_t now);
  /// The payload of any session that has this content, if it is in RAM.
  [[nodiscard]] std::shared_ptr<const KvPayload> find(const BlockKey& key) const;
  /// Whether this content has a payload, in RAM or below.
  [[nodiscard]] bool has(const BlockKey& key) const;
  /// What went wrong below since this was last asked: the payloads in question are in RAM alone, or dropped.
  std::optional<Error> take_tier_error();

  /// Records of a session in stream order.
  [[nodiscard]] std::vector<BlockRecord> records(SessionId session) const;
  [[nodiscard]] std::optional<BlockRecord> record(SessionId session, StreamRange range) const;
  /// Tokens of any range, across records; empty if part of it is not recorded.
  [[nodiscard]] std::vector<Token> tokens(SessionId session, StreamRange range) const;

  /// Sets the bytes that `owner` uses beside the payloads (recall index). Dropping payloads if needed.
  /// Errors: host_budget_exceeded, engine_misuse for a negative number; the old charge stays then.
  Status charge(SessionId owner, std::int64_t bytes);

  /// Forgets a session and its charge; payloads that no other session has are freed.
  void erase(SessionId session);

  [[nodiscard]] StoreUsage usage() const;
  /// Empty if the books are right.
  [[nodiscard]] std::string check_integrity() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace modeld
