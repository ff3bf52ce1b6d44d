// The books of the cold store, and what must hold between them after each call:
//
//   sessions ─ records in stream order ─┐            contents by key ─ payload or nothing
//                                       └─ content ─┘      └─ records that share it, at least one
//   kept: the contents that have a payload, in the order in which they got it (the index that breaks ties between
//   drops)
//
// A payload lives in a Held, whose destructor takes its bytes off the Ledger. So the count follows the memory itself:
// it falls when the last pointer goes, whether that was the store's or a caller's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "plan/retention.h"
#include "store/cold_store.h"

namespace modeld {

struct Ledger {
  std::int64_t payload_bytes = 0;
};

struct Held {
  Held(KvPayload p, std::shared_ptr<Ledger> l) : payload(std::move(p)), ledger(std::move(l)) {
    ledger->payload_bytes += bytes();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { ledger->payload_bytes -= bytes(); }
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(payload.data.size()); }

  KvPayload payload;
  std::shared_ptr<Ledger> ledger;
};

struct Content;

struct Record {
  SessionId session;
  StreamRange range;
  CacheClass cls = CacheClass::volatile_;
  KvOrigin origin = KvOrigin::isolated;
  std::uint64_t last_use = 0;
  std::uint32_t fetches = 0;
  std::vector<Token> tokens;
  Content* content = nullptr;
};

struct Content {
  BlockKey key;
  std::shared_ptr<Held> held;
  /// Key of `kept`; valid while there is a payload.
  std::uint64_t kept_index = 0;
  std::vector<Record*> records;
};

struct SessionBooks {
  std::map<StreamPos, Record> records;
  std::int64_t charged = 0;
};

/// A node of a map or hash table beside its value, and what the allocator adds.
inline constexpr std::size_t kNode = 4 * sizeof(void*) + 2 * sizeof(void*);

inline constexpr std::size_t kRecordOverhead =
    (sizeof(StreamPos) + sizeof(Record) + kNode) +                  // session's map
    (sizeof(BlockKey) + sizeof(Content) + kNode + sizeof(void*)) +  // contents
    (sizeof(std::uint64_t) + sizeof(Content*) + kNode) +            // kept
    (sizeof(Record*) + 2 * sizeof(void*)) +                         // sharers
    (sizeof(Held) + kNode) + 2 * (2 * sizeof(void*));               // payload, tokens

inline std::int64_t record_bytes(std::size_t tokens) {
  return ColdStore::record_overhead_bytes() + static_cast<std::int64_t>(tokens * sizeof(Token));
}

/// The worth of a content to those that share it.
inline RetainedBlock worth_of(const Content& content) {
  RetainedBlock worth;
  for (const Record* r : content.records) {
    worth.cls = std::min(worth.cls, r->cls);
    worth.last_use = std::max(worth.last_use, r->last_use);
    worth.fetches += r->fetches;
  }
  if (content.held) {
    worth.payload_bytes = content.held->bytes();
    worth.held = content.held.use_count() > 1;
  }
  return worth;
}

}  // namespace modeld
