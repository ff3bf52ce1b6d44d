#include "store/cold_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "plan/retention.h"
#include "store/cold_books.h"

namespace modeld {
namespace {

BlockRecord to_block_record(const Record& r, const PayloadTier* below) {
  BlockRecord out;
  out.key = r.content->key;
  out.range = r.range;
  out.cls = r.cls;
  out.origin = r.origin;
  out.last_use = r.last_use;
  out.fetches = r.fetches;
  out.has_payload = r.content->held != nullptr || (below != nullptr && below->holds(out.key));
  out.payload_bytes = r.content->held != nullptr ? r.content->held->bytes() : 0;
  return out;
}

/// The record of exactly this range, const where the map is; null if there is none.
template <typename Sessions>
auto find_in(Sessions& sessions, SessionId session, StreamRange range)
    -> decltype(&sessions.begin()->second.records.begin()->second) {
  const auto books = sessions.find(session);
  if (books == sessions.end()) return nullptr;
  const auto it = books->second.records.find(range.begin);
  return it != books->second.records.end() && it->second.range == range ? &it->second : nullptr;
}

bool overlaps_any(const SessionBooks& books, StreamRange range) {
  const auto next = books.records.lower_bound(range.begin);
  if (next != books.records.end() && next->second.range.overlaps(range)) return true;
  return next != books.records.begin() && std::prev(next)->second.range.overlaps(range);
}

std::shared_ptr<const KvPayload> share(const std::shared_ptr<Held>& held) {
  if (!held) return nullptr;
  return {held, &held->payload};
}

}  // namespace

struct ColdStore::Impl {
  std::int64_t budget = 0;
  std::shared_ptr<Ledger> ledger = std::make_shared<Ledger>();
  std::map<SessionId, SessionBooks> sessions;
  std::unordered_map<BlockKey, Content> contents;
  std::map<std::uint64_t, Content*> kept;
  std::uint64_t next_index = 0;
  std::int64_t token_bytes = 0;
  std::int64_t charged_bytes = 0;
  std::int64_t cold_tokens = 0;
  std::int64_t dropped_tokens = 0;
  std::uint64_t drops = 0;
  std::uint64_t last_session = 0;

  /// The last newcomer that was refused, while the kept payloads and their worth stay as they were: a stream of equals
  /// behind it is then refused at once, without ranking everything for each.
  struct Refusal {
    RetainedBlock newcomer;
    std::int64_t deficit = 0;
  };
  std::optional<Refusal> refusal;

  PayloadTier* below = nullptr;
  std::optional<Error> tier_error;

  [[nodiscard]] std::int64_t used() const { return ledger->payload_bytes + token_bytes + charged_bytes; }
  void keep(Content& content, KvPayload payload);
  void drop(Content& content);
  void write_below(const BlockKey& key, const KvPayload& payload);
  std::shared_ptr<const KvPayload> read_below(Content& content);
  bool make_room(std::int64_t bytes, const RetainedBlock* newcomer = nullptr);
  [[nodiscard]] bool refused_before(const RetainedBlock& newcomer, std::int64_t deficit) const;
  [[nodiscard]] tl::unexpected<Error> over_budget(std::string_view what, std::int64_t needed) const;
  [[nodiscard]] std::string recount() const;
};

tl::unexpected<Error> ColdStore::Impl::over_budget(std::string_view what, std::int64_t needed) const {
  return fail(
      ErrorCode::host_budget_exceeded,
      fmt::format("The cold store cannot hold {}: {} more bytes are needed, {} of {} are in use and no more of them "
                  "can be dropped. Give the cold store a larger budget, or less text.",
                  what, needed, used(), budget),
      {{"needed_bytes", needed}, {"used_bytes", used()}, {"budget_bytes", budget}});
}

void ColdStore::Impl::keep(Content& content, KvPayload payload) {
  MODELD_CHECK(!content.held);
  if (payload.data.capacity() != payload.data.size()) payload.data.shrink_to_fit();
  content.held = std::make_shared<Held>(std::move(payload), ledger);
  content.kept_index = next_index++;
  kept.emplace(content.kept_index, &content);
  for (const Record* r : content.records) {
    cold_tokens += r->range.size();
    dropped_tokens -= r->range.size();
  }
  refusal.reset();
}

void ColdStore::Impl::drop(Content& content) {
  MODELD_CHECK(content.held && content.held.use_count() == 1);
  content.held.reset();
  kept.erase(content.kept_index);
  for (const Record* r : content.records) {
    cold_tokens -= r->range.size();
    dropped_tokens += r->range.size();
  }
  ++drops;
  refusal.reset();
}

void ColdStore::Impl::write_below(const BlockKey& key, const KvPayload& payload) {
  if (below == nullptr || payload.data.empty()) return;
  if (Status written = below->write(key, payload); !written) tier_error = std::move(written).error();
}

std::shared_ptr<const KvPayload> ColdStore::Impl::read_below(Content& content) {
  if (below == nullptr || !below->holds(content.key)) return nullptr;
  Result<KvPayload> payload = below->read(content.key);
  if (!payload) {
    tier_error = std::move(payload).error();
    return nullptr;
  }
  // It is about to be used: what nobody holds makes room for it. If there is none it lives as long as the caller uses
  // it.
  if (!make_room(static_cast<std::int64_t>(payload->data.size())))
    return std::make_shared<const KvPayload>(std::move(*payload));
  keep(content, std::move(*payload));
  return share(content.held);
}

bool ColdStore::Impl::refused_before(const RetainedBlock& newcomer, std::int64_t deficit) const {
  return refusal && newcomer.cls >= refusal->newcomer.cls && newcomer.fetches <= refusal->newcomer.fetches &&
         newcomer.last_use <= refusal->newcomer.last_use && deficit >= refusal->deficit;
}

// Frees what `bytes` more need, by dropping payloads in the order of choose_drops(). With a newcomer (a payload among
// those bytes) it is ranked with the others, behind its equals: if its turn comes before enough is free, nothing is
// dropped and the answer is no. Without one everything that nobody holds may go.
bool ColdStore::Impl::make_room(std::int64_t bytes, const RetainedBlock* newcomer) {
  if (bytes > budget) return false;
  const std::int64_t deficit = used() - budget + bytes;
  if (deficit <= 0) return true;
  if (deficit > ledger->payload_bytes) return false;
  if (newcomer != nullptr && refused_before(*newcomer, deficit)) return false;

  std::vector<Content*> contents_in_order;
  std::vector<RetainedBlock> worths;
  contents_in_order.reserve(kept.size());
  worths.reserve(kept.size() + 1);
  bool any_held = false;
  for (const auto& [index, content] : kept) {
    contents_in_order.push_back(content);
    worths.push_back(worth_of(*content));
    any_held = any_held || worths.back().held;
  }
  if (newcomer != nullptr) worths.push_back(*newcomer);

  std::vector<std::size_t> chosen = choose_drops(worths, std::max(deficit, budget / 100));
  if (chosen.empty()) chosen = choose_drops(worths, deficit);
  std::int64_t freed = 0;
  std::size_t count = 0;
  while (count < chosen.size() && chosen[count] < contents_in_order.size())
    freed += worths[chosen[count++]].payload_bytes;
  if (freed < deficit) {
    // Whether a held payload is let go cannot be seen here, so that a refusal is remembered only if there was none.
    if (newcomer != nullptr && !any_held) refusal = Refusal{*newcomer, deficit};
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) drop(*contents_in_order[chosen[i]]);
  MODELD_CHECK(used() + bytes <= budget);
  return true;
}

ColdStore::ColdStore(std::int64_t budget_bytes, PayloadTier* below) : impl_(std::make_unique<Impl>()) {
  impl_->budget = std::max<std::int64_t>(budget_bytes, 0);
  impl_->below = below;
}
ColdStore::~ColdStore() = default;

SessionId ColdStore::new_session() { return SessionId{++impl_->last_session}; }

std::int64_t ColdStore::record_overhead_bytes() { return static_cast<std::int64_t>(kRecordOverhead); }

Result<BlockRecord> ColdStore::put(SessionId session, StreamRange range, CacheClass cls, KvOrigin origin,
                                   const BlockKey& key, std::span<const Token> tokens, KvPayload payload,
                                   std::uint64_t now) {
  Impl& s = *impl_;
  if (range.empty() || range.begin < StreamPos(0) || static_cast<std::int64_t>(tokens.size()) != range.size()) {
    return fail(ErrorCode::engine_misuse,
                fmt::format("A block of {} tokens was put under the range [{}, {}). Give one token per position.",
                            tokens.size(), range.begin.get(), range.end.get()));
  }
  const bool offered = !payload.data.empty();
  if (offered && payload.places.size() != range.size()) {
    return fail(ErrorCode::engine_misuse,
                fmt::format("A payload of {} places was put for {} tokens.", payload.places.size(), range.size()));
  }
  if (const auto books = s.sessions.find(session); books != s.sessions.end() && overlaps_any(books->second, range)) {
    return fail(
        ErrorCode::engine_misuse,
        fmt::format("The range [{}, {}) overlaps a block that the session has already. Erase the session first.",
                    range.begin.get(), range.end.get()));
  }

  const std::int64_t own_bytes = record_bytes(tokens.size());
  const auto known = s.contents.find(key);
  // A copy of the pointer holds a shared payload, so that making room for this record does not drop it.
  std::shared_ptr<Held> shared = known != s.contents.end() ? known->second.held : nullptr;
  bool keep = false;
  if (offered && !shared) {
    RetainedBlock newcomer = known != s.contents.end() ? worth_of(known->second) : RetainedBlock{};
    newcomer.cls = std::min(newcomer.cls, cls);
    newcomer.last_use = std::max(newcomer.last_use, now);
    newcomer.payload_bytes = static_cast<std::int64_t>(payload.data.size());
    keep = s.make_room(own_bytes + newcomer.payload_bytes, &newcomer);
  }
  if (!keep && !s.make_room(own_bytes)) {
    shared.reset();
    if (!s.make_room(own_bytes))
      return s.over_budget(fmt::format("the {} tokens of a block", tokens.size()), own_bytes);
  }
  shared.reset();

  Record& record = s.sessions[session].records[range.begin];
  Content& content = s.contents[key];
  content.key = key;
  record = Record{session, range, cls, origin, now, 0, {tokens.begin(), tokens.end()}, &content};
  content.records.push_back(&record);
  s.token_bytes += own_bytes;
  (content.held ? s.cold_tokens : s.dropped_tokens) += range.size();
  if (content.held) s.refusal.reset();
  s.write_below(key, payload);
  if (keep) s.keep(content, std::move(payload));
  return to_block_record(record, s.below);
}

std::shared_ptr<const KvPayload> ColdStore::fetch(SessionId session, StreamRange range, std::uint64_t now) {
  Record* record = find_in(impl_->sessions, session, range);
  if (record == nullptr) return nullptr;
  record->last_use = std::max(record->last_use, now);
  ++record->fetches;
  impl_->refusal.reset();
  return record->content->held ? share(record->content->held) : impl_->read_below(*record->content);
}

Status ColdStore::restore(SessionId session, StreamRange range, KvPayload payload, std::uint64_t now) {
  Impl& s = *impl_;
  Record* record = find_in(s.sessions, session, range);
  if (record == nullptr || payload.data.empty() || payload.places.size() != range.size()) {
    return fail(ErrorCode::engine_misuse,
                fmt::format("A payload of {} bytes and {} places was given back to [{}, {}), {}.", payload.data.size(),
                            payload.places.size(), range.begin.get(), range.end.get(),
                            record == nullptr ? "which is no block of the session" : "which it does not fit"));
  }
  Content& content = *record->content;
  s.write_below(content.key, payload);
  if (!content.held) {
    RetainedBlock newcomer = worth_of(content);
    newcomer.last_use = std::max(newcomer.last_use, now);
    newcomer.payload_bytes = static_cast<std::int64_t>(payload.data.size());
    if (!s.make_room(newcomer.payload_bytes, &newcomer)) {
      return s.over_budget("the KV of a block beside more valuable ones", newcomer.payload_bytes);
    }
    s.keep(content, std::move(payload));
  }
  record->last_use = std::max(record->last_use, now);
  s.refusal.reset();
  return {};
}

std::shared_ptr<const KvPayload> ColdStore::find(const BlockKey& key) const {
  const auto it = impl_->contents.find(key);
  return it != impl_->contents.end() ? share(it->second.held) : nullptr;
}

bool ColdStore::has(const BlockKey& key) const {
  const auto it = impl_->contents.find(key);
  return (it != impl_->contents.end() && it->second.held) || (impl_->below != nullptr && impl_->below->holds(key));
}

std::optional<Error> ColdStore::take_tier_error() { return std::exchange(impl_->tier_error, std::nullopt); }

std::vector<BlockRecord> ColdStore::records(SessionId session) const {
  std::vector<BlockRecord> out;
  const auto books = impl_->sessions.find(session);
  if (books == impl_->sessions.end()) return out;
  out.reserve(books->second.records.size());
  for (const auto& [begin, record] : books->second.records) out.push_back(to_block_record(record, impl_->below));
  return out;
}

std::optional<BlockRecord> ColdStore::record(SessionId session, StreamRange range) const {
  const Record* record = find_in(impl_->sessions, session, range);
  if (record == nullptr) return std::nullopt;
  return to_block_record(*record, impl_->below);
}

std::vector<Token> ColdStore::tokens(SessionId session, StreamRange range) const {
  const auto found = impl_->sessions.find(session);
  if (found == impl_->sessions.end() || range.empty()) return {};
  const auto& records = found->second.records;
  auto it = records.upper_bound(range.begin);
  if (it == records.begin()) return {};
  --it;
  std::vector<Token> out;
  StreamPos at = range.begin;
  for (; it != records.end() && at < range.end && it->second.range.contains(at); ++it) {
    const Record& r = it->second;
    const StreamPos end = std::min(r.range.end, range.end);
    out.insert(out.end(), r.tokens.begin() + (at - r.range.begin), r.tokens.begin() + (end - r.range.begin));
    at = end;
  }
  if (at != range.end) return {};
  return out;
}

Status ColdStore::charge(SessionId owner, std::int64_t bytes) {
  Impl& s = *impl_;
  if (bytes < 0) return fail(ErrorCode::engine_misuse, fmt::format("A charge of {} bytes is negative.", bytes));
  const auto books = s.sessions.find(owner);
  const std::int64_t before = books != s.sessions.end() ? books->second.charged : 0;
  if (bytes > before && !s.make_room(bytes - before)) return s.over_budget("the index", bytes - before);
  s.sessions[owner].charged = bytes;
  s.charged_bytes += bytes - before;
  return {};
}

void ColdStore::erase(SessionId session) {
  Impl& s = *impl_;
  const auto books = s.sessions.find(session);
  if (books == s.sessions.end()) return;
  std::unordered_set<Content*> touched;
  for (const auto& [begin, record] : books->second.records) {
    s.token_bytes -= record_bytes(record.tokens.size());
    (record.content->held ? s.cold_tokens : s.dropped_tokens) -= record.range.size();
    touched.insert(record.content);
  }
  for (Content* content : touched) {
    std::erase_if(content->records, [&](const Record* r) { return r->session == session; });
    if (!content->records.empty()) continue;
    if (content->held) s.kept.erase(content->kept_index);
    s.contents.erase(BlockKey(content->key));
  }
  s.charged_bytes -= books->second.charged;
  s.sessions.erase(books);
  s.refusal.reset();
}

std::string ColdStore::Impl::recount() const {
  std::int64_t own_bytes = 0;
  std::int64_t charged = 0;
  std::int64_t cold = 0;
  std::int64_t dropped = 0;
  std::size_t records = 0;
  for (const auto& [id, books] : sessions) {
    charged += books.charged;
    StreamPos end(0);
    for (const auto& [begin, r] : books.records) {
      if (r.session != id || begin != r.range.begin) return fmt::format("record at {} is filed wrongly", begin.get());
      if (begin < end) return fmt::format("records overlap at {}", begin.get());
      end = r.range.end;
      if (static_cast<std::int64_t>(r.tokens.size()) != r.range.size()) return "a record's tokens are not its range's";
      const auto content = contents.find(r.content->key);
      if (content == contents.end() || &content->second != r.content) return "a record's content is not in the books";
      if (std::ranges::count(r.content->records, &r) != 1) return "a content does not know its record once";
      own_bytes += record_bytes(r.tokens.size());
      (r.content->held ? cold : dropped) += r.range.size();
      ++records;
    }
  }
  if (own_bytes != token_bytes) return fmt::format("token bytes are {}, counted {}", token_bytes, own_bytes);
  if (charged != charged_bytes) return fmt::format("charged bytes are {}, counted {}", charged_bytes, charged);
  if (cold != cold_tokens) return fmt::format("cold tokens are {}, counted {}", cold_tokens, cold);
  if (dropped != dropped_tokens) return fmt::format("dropped tokens are {}, counted {}", dropped_tokens, dropped);

  std::int64_t payload_bytes = 0;
  std::size_t with_payload = 0;
  for (const auto& [key, content] : contents) {
    if (content.key != key || content.records.empty()) return fmt::format("content {} is an orphan", key.hex());
    records -= content.records.size();
    if (!content.held) continue;
    ++with_payload;
    payload_bytes += content.held->bytes();
    const auto it = kept.find(content.kept_index);
    if (it == kept.end() || it->second != &content) return fmt::format("payload {} is not in the order", key.hex());
  }
  if (records != 0) return "contents name records that no session has";
  if (with_payload != kept.size()) return "the order names payloads that are not there";
  // More than the kept ones are those that callers hold after erase().
  if (payload_bytes > ledger->payload_bytes) {
    return fmt::format("payload bytes are {}, counted {}", ledger->payload_bytes, payload_bytes);
  }
  if (used() > budget) return fmt::format("{} bytes are used of a budget of {}", used(), budget);
  return {};
}

std::string ColdStore::check_integrity() const { return impl_->recount(); }

StoreUsage ColdStore::usage() const {
  const Impl& s = *impl_;
  StoreUsage usage;
  usage.budget_bytes = s.budget;
  usage.payload_bytes = s.ledger->payload_bytes;
  usage.token_bytes = s.token_bytes;
  usage.charged_bytes = s.charged_bytes;
  usage.cold_tokens = s.cold_tokens;
  usage.dropped_tokens = s.dropped_tokens;
  if (s.below != nullptr) {
    for (const auto& [key, content] : s.contents) {
      if (content.held || !s.below->holds(key)) continue;
      for (const Record* r : content.records) {
        usage.cold_tokens += r->range.size();
        usage.dropped_tokens -= r->range.size();
      }
    }
  }
  usage.drops = s.drops;
  return usage;
}

}  // namespace modeld
