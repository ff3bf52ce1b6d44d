// The store against a naive model of it: random operations, and after each one every number and every decision is
// checked from the outside: what was dropped, whether anything had to be, and whether each refusal was right.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "store/cold_store.h"

namespace modeld {
namespace {

struct ModelRecord {
  std::uint64_t n = 0;
  CacheClass cls = CacheClass::volatile_;
  std::uint64_t last_use = 0;
  std::uint32_t fetches = 0;
};

/// Smaller goes first.
using Worth = std::tuple<int, std::uint32_t, std::uint64_t, std::uint64_t>;

class Model {
 public:
  Model(std::int64_t budget, std::uint64_t seed) : budget_(budget), store_(budget), random_(seed) {}

  void step() {
    now_ += pick(8) == 0 ? 1 : 0;
    deficit_ = 0;
    newcomer_.reset();
    switch (pick(10)) {
      case 0:
        hold_or_release();
        break;
      case 1:
        charge();
        break;
      case 2:
        restore();
        break;
      case 3:
      case 4:
        fetch();
        break;
      case 5:
        if (pick(12) == 0) erase();
        break;
      default:
        put();
        break;
    }
    if (!::testing::Test::HasFailure()) compare();
  }

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  static std::int64_t size_of(std::uint64_t n) { return static_cast<std::int64_t>(1 + n % 13); }
  static std::int64_t bytes_of(std::uint64_t n) { return static_cast<std::int64_t>(1 + n * 7919 % 5'000); }
  static BlockKey key_of(std::uint64_t n) { return {n, n * 31}; }
  static StreamRange range(std::uint64_t slot, std::uint64_t n) {
    const auto begin = static_cast<std::int64_t>(slot * 13);
    return {StreamPos(begin), StreamPos(begin + size_of(n))};
  }
  static std::vector<Token> tokens_of(std::uint64_t n) {
    return std::vector<Token>(static_cast<std::size_t>(size_of(n)), static_cast<Token>(n));
  }
  static KvPayload payload_of(std::uint64_t n) {
    KvPayload p;
    p.places = {Place(5), Place(static_cast<std::int32_t>(5 + size_of(n)))};
    p.data.assign(static_cast<std::size_t>(bytes_of(n)), static_cast<std::byte>(n));
    return p;
  }

  Worth worth(std::uint64_t n) const {
    CacheClass cls = CacheClass::volatile_;
    std::uint32_t fetches = 0;
    std::uint64_t last_use = 0;
    for (const auto& [session, records] : sessions_) {
      for (const auto& [slot, r] : records) {
        if (r.n != n) continue;
        cls = std::min(cls, r.cls);
        fetches += r.fetches;
        last_use = std::max(last_use, r.last_use);
      }
    }
    const auto it = kept_.find(n);
    return {-static_cast<int>(cls), fetches, last_use, it != kept_.end() ? it->second : ~std::uint64_t{0}};
  }

  bool is_held(std::uint64_t n) const {
    const auto* pointer = store_.find(key_of(n)).get();
    return std::ranges::any_of(held_, [&](const auto& h) { return h.get() == pointer; });
  }

  std::int64_t used() const {
    std::int64_t sum = 0;
    for (const auto& [session, records] : sessions_) {
      for (const auto& [slot, r] : records) sum += ColdStore::record_overhead_bytes() + 4 * size_of(r.n);
    }
    for (const auto& [session, bytes] : charges_) sum += bytes;
    for (const auto& [n, order] : kept_) sum += bytes_of(n);
    return sum + orphan_bytes();
  }

  std::int64_t orphan_bytes() const {
    std::set<const KvPayload*> orphans;
    for (const auto& h : held_) orphans.insert(h.get());
    for (const auto& [n, order] : kept_) orphans.erase(store_.find(key_of(n)).get());
    std::int64_t sum = 0;
    for (const auto* p : orphans) sum += static_cast<std::int64_t>(p->data.size());
    return sum;
  }

  /// What could be dropped for something of worth `below` (anything, without one).
  std::int64_t droppable(std::optional<Worth> below) const {
    std::int64_t sum = 0;
    for (const auto& [n, order] : kept_) {
      if (!is_held(n) && (!below || worth(n) < *below)) sum += bytes_of(n);
    }
    return sum;
  }

  void put() {
    const SessionId session{pick(3)};
    const std::uint64_t slot = pick(60);
    const std::uint64_t n = pick(150);
    const auto cls = static_cast<CacheClass>(pick(3));
    const bool taken = sessions_[session].contains(slot);
    const std::int64_t own = ColdStore::record_overhead_bytes() + 4 * size_of(n);
    before();
    const bool wanted = !kept_.contains(n);
    Worth value = worth(n);
    std::get<0>(value) = std::max(std::get<0>(value), -static_cast<int>(cls));
    std::get<2>(value) = std::max(std::get<2>(value), now_);
    const std::int64_t tokens_deficit = used() + own - budget_;
    const std::int64_t full_deficit = tokens_deficit + bytes_of(n);
    const std::int64_t room_for_value = droppable(value);
    const std::int64_t room_for_tokens = droppable(std::nullopt);

    const auto r =
        store_.put(session, range(slot, n), cls, KvOrigin::streamed, key_of(n), tokens_of(n), payload_of(n), now_);
    if (taken) {
      ASSERT_FALSE(r);
      ASSERT_EQ(r.error().code, ErrorCode::engine_misuse);
      return;
    }
    if (!r) {
      ASSERT_EQ(r.error().code, ErrorCode::host_budget_exceeded);
      ASSERT_GT(tokens_deficit, room_for_tokens);
      return;
    }
    ASSERT_LE(tokens_deficit, room_for_tokens);
    sessions_[session][slot] = {n, cls, now_, 0};
    deficit_ = tokens_deficit;
    if (!wanted) return;
    ASSERT_EQ(r->has_payload, full_deficit <= room_for_value) << "kept or refused against its worth";
    if (!r->has_payload) return;
    newcomer_ = value;
    deficit_ = full_deficit;
    kept_[n] = order_++;
  }

  void restore() {
    const auto [session, slot, r] = any_record();
    if (r == nullptr) return;
    before();
    const std::uint64_t n = r->n;
    const bool wanted = !kept_.contains(n);
    Worth value = worth(n);
    std::get<2>(value) = std::max(std::get<2>(value), now_);
    const std::int64_t deficit = used() + bytes_of(n) - budget_;
    const std::int64_t room = droppable(value);
    const auto status = store_.restore(session, range(slot, n), payload_of(n), now_);
    if (wanted) {
      ASSERT_EQ(status.has_value(), deficit <= room);
      if (!status) return;
      newcomer_ = value;
      deficit_ = deficit;
      kept_[n] = order_++;
    }
    ASSERT_TRUE(status);
    r->last_use = std::max(r->last_use, now_);
  }

  void charge() {
    const SessionId session{pick(3)};
    const auto bytes = static_cast<std::int64_t>(pick(static_cast<std::uint64_t>(budget_ / 4 + 10)));
    before();
    const std::int64_t deficit = used() + bytes - charges_[session] - budget_;
    const std::int64_t room = droppable(std::nullopt);
    const auto status = store_.charge(session, bytes);
    ASSERT_EQ(status.has_value(), deficit <= room);
    if (!status) return;
    deficit_ = deficit;
    charges_[session] = bytes;
  }

  void fetch() {
    const auto [session, slot, r] = any_record();
    if (r == nullptr) return;
    before();
    const auto payload = store_.fetch(session, range(slot, r->n), now_);
    ++r->fetches;
    r->last_use = now_;
    ASSERT_EQ(payload != nullptr, kept_.contains(r->n));
    if (payload) {
      ASSERT_EQ(payload->data, payload_of(r->n).data);
    }
  }

  void erase() {
    const SessionId session{pick(3)};
    sessions_.erase(session);
    charges_.erase(session);
    store_.erase(session);
    std::erase_if(kept_, [&](const auto& entry) {
      for (const auto& [id, records] : sessions_) {
        for (const auto& [slot, r] : records) {
          if (r.n == entry.first) return false;
        }
      }
      return true;
    });
    before();
  }

  void hold_or_release() {
    if (held_.size() > 4 || (!held_.empty() && pick(2) == 0)) {
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(pick(held_.size())));
    } else if (auto p = store_.find(key_of(pick(150)))) {
      held_.push_back(std::move(p));
    }
    before();
  }

  std::tuple<SessionId, std::uint64_t, ModelRecord*> any_record() {
    const SessionId session{pick(3)};
    const auto it = sessions_.find(session);
    if (it == sessions_.end() || it->second.empty()) return {session, 0, nullptr};
    auto record = it->second.begin();
    std::advance(record, static_cast<std::ptrdiff_t>(pick(it->second.size())));
    return {session, record->first, &record->second};
  }

  /// Remembers what could be dropped and its worth, before an operation changes it.
  void before() {
    worth_before_.clear();
    for (const auto& [n, order] : kept_) worth_before_[n] = {worth(n), is_held(n)};
  }

  void check_drops() {
    std::int64_t freed = 0;
    std::int64_t most_valuable_bytes = 0;
    std::optional<Worth> most_valuable;
    for (auto it = kept_.begin(); it != kept_.end();) {
      const std::uint64_t n = it->first;
      if (store_.find(key_of(n)) != nullptr) {
        ++it;
        continue;
      }
      ASSERT_TRUE(worth_before_.contains(n)) << "a newcomer was dropped at once";
      const auto& [value, held] = worth_before_.at(n);
      ASSERT_FALSE(held) << "a held payload was dropped";
      freed += bytes_of(n);
      ++drops_;
      if (!most_valuable || value > *most_valuable) {
        most_valuable = value;
        most_valuable_bytes = bytes_of(n);
      }
      it = kept_.erase(it);
    }
    if (!most_valuable) return;
    ASSERT_GT(deficit_, 0) << "dropped without need";
    ASSERT_LT(freed - most_valuable_bytes, std::max(deficit_, budget_ / 100)) << "dropped more than needed";
    if (newcomer_) {
      ASSERT_LT(*most_valuable, *newcomer_);
    }
    for (const auto& [n, entry] : worth_before_) {
      if (kept_.contains(n) && !entry.second && !shared_now(n)) {
        ASSERT_LT(*most_valuable, entry.first) << "a less valuable one stayed";
      }
    }
  }

  /// The payload that the last put() shared was held by it while room was made.
  bool shared_now(std::uint64_t n) const { return worth(n) != worth_before_.at(n).first || sharing_same(n); }
  bool sharing_same(std::uint64_t n) const {
    int uses = 0;
    for (const auto& [session, records] : sessions_) {
      for (const auto& [slot, r] : records) uses += r.n == n ? 1 : 0;
    }
    return uses > 1;
  }

  void compare() {
    ASSERT_EQ(store_.check_integrity(), "");
    check_drops();
    if (::testing::Test::HasFailure()) return;
    const StoreUsage usage = store_.usage();
    ASSERT_EQ(usage.used_bytes(), used());
    ASSERT_LE(usage.used_bytes(), budget_);
    ASSERT_EQ(usage.drops, drops_);
    std::int64_t cold = 0;
    std::int64_t all = 0;
    for (const auto& [session, records] : sessions_) {
      const auto stored = store_.records(session);
      ASSERT_EQ(stored.size(), records.size());
      std::size_t i = 0;
      for (const auto& [slot, r] : records) {
        const BlockRecord& s = stored[i++];
        ASSERT_EQ(s.range, range(slot, r.n));
        ASSERT_EQ(s.key, key_of(r.n));
        ASSERT_EQ(s.cls, r.cls);
        ASSERT_EQ(s.fetches, r.fetches);
        ASSERT_EQ(s.last_use, r.last_use);
        ASSERT_EQ(s.has_payload, kept_.contains(r.n));
        ASSERT_EQ(store_.tokens(session, s.range), tokens_of(r.n));
        all += size_of(r.n);
        cold += s.has_payload ? size_of(r.n) : 0;
      }
    }
    ASSERT_EQ(usage.cold_tokens, cold);
    ASSERT_EQ(usage.dropped_tokens, all - cold);
  }

  std::int64_t budget_;
  ColdStore store_;
  std::mt19937_64 random_;
  std::uint64_t now_ = 1;
  std::uint64_t order_ = 0;
  std::uint64_t drops_ = 0;
  std::int64_t deficit_ = 0;
  std::optional<Worth> newcomer_;
  std::map<SessionId, std::map<std::uint64_t, ModelRecord>> sessions_;
  std::map<SessionId, std::int64_t> charges_;
  std::map<std::uint64_t, std::uint64_t> kept_;
  std::map<std::uint64_t, std::pair<Worth, bool>> worth_before_;
  std::vector<std::shared_ptr<const KvPayload>> held_;
};

TEST(ColdStoreModel, AgreesWithTheNaiveModelAfterEveryOperation) {
  for (const std::int64_t budget : {3'000, 40'000, 120'000, 1'000'000}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(::testing::Message() << "budget " << budget << ", seed " << seed);
      Model model(budget, seed);
      for (int i = 0; i < 1'000; ++i) {
        SCOPED_TRACE(::testing::Message() << "operation " << i);
        model.step();
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace modeld
