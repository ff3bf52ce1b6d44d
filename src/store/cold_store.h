// R3: the cold store. The KV of everything that was computed, in host RAM, addressed by content, found by session and range.
//
// Invariants: - budget first: a payload is admitted only when it fits, by dropping others if the policy allows; never over;
//             - a dropped block keeps its tokens: it can be recomputed; nothing else is ever lost;
//             - index and tokens are charged to the same budget;
//             - bytes are counted, not estimated: check_integrity() recounts.
// Thread:     one thread at a time.
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
  bool has_payload = false;
  std::int64_t payload_bytes = 0;
};

struct StoreUsage {
  std::int64_t budget_bytes = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t token_bytes = 0;
  /// Charged by the recall index and the like.
  std::int64_t charged_bytes = 0;
  std::int64_t cold_tokens = 0;
  std::int64_t dropped_tokens = 0;
  std::uint64_t drops = 0;
  [[nodiscard]] std::int64_t used_bytes() const { return payload_bytes + token_bytes + charged_bytes; }
};

class ColdStore {
 public:
  explicit ColdStore(std::int64_t budget_bytes);
  ~ColdStore();
  ColdStore(const ColdStore&) = delete;
  ColdStore& operator=(const ColdStore&) = delete;

  /// Records a block of a session with its tokens, and its payload if the budget allows (after dropping less valuable ones).
  /// A payload that is already there under `key` is shared. Ranges of one session do not overlap.
  /// Returns the record; has_payload tells whether the payload was kept. Errors: host_budget_exceeded when not even the
  /// tokens fit; engine_misuse for an overlapping or empty range, or when tokens.size() != range.size().
  Result<BlockRecord> put(SessionId session, StreamRange range, CacheClass cls, KvOrigin origin, const BlockKey& key,
                          std::span<const Token> tokens, KvPayload payload, std::uint64_t now);

  /// The payload, or nothing if it was dropped or never kept. Valid as long as the pointer is held, drops included.
  /// Counts as a fetch at `now`.
  std::shared_ptr<const KvPayload> fetch(SessionId session, StreamRange range, std::uint64_t now);
  /// Gives a dropped block its payload back (recomputed). Errors as put().
  Status restore(SessionId session, StreamRange range, KvPayload payload, std::uint64_t now);
  /// Whether any session has this content, with its payload.
  [[nodiscard]] std::shared_ptr<const KvPayload> find(const BlockKey& key) const;

  /// Records of a session in stream order.
  [[nodiscard]] std::vector<BlockRecord> records(SessionId session) const;
  [[nodiscard]] std::optional<BlockRecord> record(SessionId session, StreamRange range) const;
  [[nodiscard]] std::vector<Token> tokens(SessionId session, StreamRange range) const;

  /// Sets the bytes that `owner` uses beside the payloads (recall index). Dropping payloads if needed.
  /// Errors: host_budget_exceeded, and the old charge stays.
  Status charge(SessionId owner, std::int64_t bytes);

  /// Forgets a session; payloads that no other session has are freed.
  void erase(SessionId session);

  [[nodiscard]] StoreUsage usage() const;
  /// Empty if the books are right.
  [[nodiscard]] std::string check_integrity() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace modeld
