#include "store/cold_store.h"

#include <gtest/gtest.h>

#include <chrono>

#include "plan/retention.h"

namespace modeld {
namespace {

constexpr SessionId kOne{1};
constexpr SessionId kTwo{2};

StreamRange at(std::int64_t begin, std::int64_t size) { return {StreamPos(begin), StreamPos(begin + size)}; }

BlockKey key_of(std::uint64_t n) { return {n, n * 7919}; }

std::vector<Token> tokens_of(std::uint64_t n, std::int64_t size) {
  std::vector<Token> out;
  for (std::int64_t i = 0; i < size; ++i) out.push_back(static_cast<Token>(n * 1000 + static_cast<std::uint64_t>(i)));
  return out;
}

KvPayload payload_of(std::uint64_t n, std::int64_t tokens, std::size_t bytes) {
  KvPayload p;
  p.places = {Place(0), Place(static_cast<std::int32_t>(tokens))};
  p.data.assign(bytes, static_cast<std::byte>(n));
  return p;
}

struct Spec {
  SessionId session = kOne;
  std::int64_t begin = 0;
  std::uint64_t n = 1;
  CacheClass cls = CacheClass::volatile_;
  std::uint64_t now = 1;
  std::int64_t size = 8;
  std::size_t bytes = 10'000;
};

Result<BlockRecord> put(ColdStore& store, const Spec& s) {
  return store.put(s.session, at(s.begin, s.size), s.cls, KvOrigin::isolated, key_of(s.n), tokens_of(s.n, s.size),
                   payload_of(s.n, s.size, s.bytes), s.now);
}

std::int64_t tokens_cost(std::int64_t n) { return ColdStore::record_overhead_bytes() + 4 * n; }

/// Room for `count` blocks of the default Spec, exactly.
std::int64_t room_for(std::int64_t count) { return count * (10'000 + tokens_cost(8)); }

#define EXPECT_SOUND(store) EXPECT_EQ((store).check_integrity(), "")

TEST(ColdStore, GivesBackWhatWasPutByRangeAndByKey) {
  ColdStore store(room_for(4));
  const auto record = put(store, {.begin = 16, .n = 5});
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->has_payload);
  EXPECT_EQ(record->payload_bytes, 10'000);
  EXPECT_EQ(record->key, key_of(5));
  const auto payload = store.fetch(kOne, at(16, 8), 2);
  ASSERT_NE(payload, nullptr);
  EXPECT_EQ(payload->data, payload_of(5, 8, 10'000).data);
  EXPECT_EQ(store.find(key_of(5)), payload);
  EXPECT_EQ(store.find(key_of(6)), nullptr);
  EXPECT_EQ(store.fetch(kOne, at(16, 7), 2), nullptr);
  EXPECT_EQ(store.fetch(kTwo, at(16, 8), 2), nullptr);
  EXPECT_EQ(store.record(kOne, at(16, 8))->fetches, 1U);
  EXPECT_EQ(store.record(kOne, at(16, 8))->last_use, 2U);
  EXPECT_SOUND(store);
}

TEST(ColdStore, CountsBytesExactly) {
  ColdStore store(room_for(4));
  ASSERT_TRUE(put(store, {}));
  ASSERT_TRUE(store.charge(kOne, 777));
  const StoreUsage usage = store.usage();
  EXPECT_EQ(usage.payload_bytes, 10'000);
  EXPECT_EQ(usage.token_bytes, tokens_cost(8));
  EXPECT_EQ(usage.charged_bytes, 777);
  EXPECT_EQ(usage.cold_tokens, 8);
  EXPECT_EQ(usage.dropped_tokens, 0);
  EXPECT_EQ(usage.budget_bytes, room_for(4));
}

TEST(ColdStore, TokensOfARangeCrossRecordsAndAreAllOrNothing) {
  ColdStore store(room_for(4));
  ASSERT_TRUE(put(store, {.begin = 0, .n = 1}));
  ASSERT_TRUE(put(store, {.begin = 8, .n = 2}));
  ASSERT_TRUE(put(store, {.begin = 24, .n = 3}));
  EXPECT_EQ(store.tokens(kOne, at(6, 4)), (std::vector<Token>{1006, 1007, 2000, 2001}));
  EXPECT_EQ(store.tokens(kOne, at(8, 8)), tokens_of(2, 8));
  EXPECT_TRUE(store.tokens(kOne, at(12, 8)).empty());
  EXPECT_TRUE(store.tokens(kOne, at(20, 8)).empty());
  EXPECT_TRUE(store.tokens(kOne, at(30, 8)).empty());
  EXPECT_TRUE(store.tokens(kTwo, at(0, 8)).empty());
}

TEST(ColdStore, RefusesWhatBreaksTheContractAndChangesNothing) {
  ColdStore store(room_for(4));
  ASSERT_TRUE(put(store, {.begin = 8}));
  const auto misuse = [&](const Result<BlockRecord>& r) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, ErrorCode::engine_misuse);
  };
  misuse(put(store, {.begin = 8, .n = 2}));
  misuse(put(store, {.begin = 1, .n = 2}));
  misuse(put(store, {.begin = 15, .n = 2}));
  misuse(put(store, {.begin = 32, .n = 2, .size = 0}));
  misuse(put(store, {.begin = -8, .n = 2}));
  misuse(store.put(kOne, at(32, 8), {}, {}, key_of(2), tokens_of(2, 7), payload_of(2, 8, 10), 1));
  misuse(store.put(kOne, at(32, 8), {}, {}, key_of(2), tokens_of(2, 8), payload_of(2, 7, 10), 1));
  EXPECT_EQ(store.charge(kOne, -1).error().code, ErrorCode::engine_misuse);
  EXPECT_EQ(store.restore(kOne, at(32, 8), payload_of(2, 8, 10), 1).error().code, ErrorCode::engine_misuse);
  EXPECT_EQ(store.restore(kOne, at(8, 8), payload_of(2, 9, 10), 1).error().code, ErrorCode::engine_misuse);
  EXPECT_EQ(store.records(kOne).size(), 1U);
  EXPECT_EQ(store.usage().used_bytes(), room_for(1));
  EXPECT_TRUE(put(store, {.begin = 0, .n = 2}));
  EXPECT_TRUE(put(store, {.begin = 16, .n = 3}));
  EXPECT_SOUND(store);
}

TEST(ColdStore, NeverEvenKeepsTokensWithoutABudget) {
  for (const std::int64_t budget : {std::int64_t{0}, std::int64_t{-5}, tokens_cost(8) - 1}) {
    ColdStore store(budget);
    const auto r = put(store, {});
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, ErrorCode::host_budget_exceeded);
    EXPECT_TRUE(store.records(kOne).empty());
    EXPECT_EQ(store.usage().used_bytes(), 0);
    EXPECT_FALSE(store.charge(kOne, tokens_cost(8)));
    EXPECT_FALSE(store.charge(kOne, std::numeric_limits<std::int64_t>::max()));
    EXPECT_SOUND(store);
  }
}

TEST(ColdStore, KeepsTokensWhereThePayloadIsLargerThanTheBudget) {
  ColdStore store(9'999);
  const auto r = put(store, {});
  ASSERT_TRUE(r);
  EXPECT_FALSE(r->has_payload);
  EXPECT_EQ(r->payload_bytes, 0);
  EXPECT_EQ(store.usage().dropped_tokens, 8);
  EXPECT_EQ(store.usage().drops, 0U);
  EXPECT_EQ(store.tokens(kOne, at(0, 8)), tokens_of(1, 8));
  EXPECT_EQ(store.restore(kOne, at(0, 8), payload_of(1, 8, 10'000), 1).error().code, ErrorCode::host_budget_exceeded);
  EXPECT_TRUE(store.restore(kOne, at(0, 8), payload_of(1, 8, 100), 1));
  EXPECT_SOUND(store);
}

TEST(ColdStore, DropsVolatileBeforePinnedAndKeepsTheirTokens) {
  ColdStore store(room_for(3) + tokens_cost(8));
  ASSERT_TRUE(put(store, {.begin = 0, .n = 1, .cls = CacheClass::task_pinned}));
  ASSERT_TRUE(put(store, {.begin = 8, .n = 2, .now = 9}));
  ASSERT_TRUE(put(store, {.begin = 16, .n = 3, .cls = CacheClass::repo_map}));
  const auto r = put(store, {.begin = 24, .n = 4, .cls = CacheClass::task_pinned});
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->has_payload);
  EXPECT_EQ(store.find(key_of(2)), nullptr);
  EXPECT_NE(store.find(key_of(1)), nullptr);
  EXPECT_EQ(store.fetch(kOne, at(8, 8), 10), nullptr);
  EXPECT_EQ(store.tokens(kOne, at(8, 8)), tokens_of(2, 8));
  EXPECT_EQ(store.usage().drops, 1U);
  EXPECT_EQ(store.usage().dropped_tokens, 8);
  EXPECT_SOUND(store);
}

TEST(ColdStore, NeverDropsAMoreValuablePayloadForALessValuableOne) {
  ColdStore store(room_for(2) + 2 * tokens_cost(8));
  ASSERT_TRUE(put(store, {.begin = 0, .n = 1, .cls = CacheClass::task_pinned}));
  ASSERT_TRUE(put(store, {.begin = 8, .n = 2}));
  ASSERT_NE(store.fetch(kOne, at(8, 8), 2), nullptr);
  const auto r = put(store, {.begin = 16, .n = 3, .now = 3});
  ASSERT_TRUE(r);
  EXPECT_FALSE(r->has_payload);
  EXPECT_EQ(store.usage().drops, 0U);
  // Wanted twice since: now it is worth more than block 2, fetched once.
  EXPECT_EQ(store.fetch(kOne, at(16, 8), 4), nullptr);
  EXPECT_EQ(store.fetch(kOne, at(16, 8), 5), nullptr);
  ASSERT_TRUE(store.restore(kOne, at(16, 8), payload_of(3, 8, 10'000), 5));
  EXPECT_NE(store.find(key_of(3)), nullptr);
  EXPECT_EQ(store.find(key_of(2)), nullptr);
  EXPECT_SOUND(store);
}

TEST(ColdStore, NeverDropsAPayloadThatACallerHolds) {
  ColdStore store(room_for(2));
  ASSERT_TRUE(put(store, {.begin = 0, .n = 1}));
  ASSERT_TRUE(put(store, {.begin = 8, .n = 2}));
  auto one = store.find(key_of(1));
  ASSERT_TRUE(put(store, {.begin = 16, .n = 3, .now = 2}));
  EXPECT_EQ(store.find(key_of(1)), one);
  EXPECT_EQ(store.find(key_of(2)), nullptr);
  EXPECT_SOUND(store);
}

TEST(ColdStore, DropsAPayloadForTheNextNewcomerOnceItsHolderLetGo) {
  ColdStore store(room_for(1) + 2 * tokens_cost(8));
  ASSERT_TRUE(put(store, {.begin = 0, .n = 1}));
  auto held = store.find(key_of(1));
  EXPECT_FALSE(put(store, {.begin = 8, .n = 2})->has_payload);
  held.reset();
  EXPECT_TRUE(put(store, {.begin = 16, .n = 3})->has_payload);
  EXPECT_SOUND(store);
}

TEST(ColdStore, CountsAPayloadAfterEraseUntilTheCallerLetsGo) {
  ColdStore store(room_for(1));
  ASSERT_TRUE(put(store, {}));
  auto held = store.find(key_of(1));
  store.erase(kOne);
  EXPECT_EQ(store.usage().used_bytes(), 10'000);
  EXPECT_EQ(store.find(key_of(1)), nullptr);
  EXPECT_FALSE(put(store, {.session = kTwo, .n = 2})->has_payload);
  EXPECT_SOUND(store);
  EXPECT_EQ(held->data.size(), 10'000U);
  held.reset();
  EXPECT_EQ(store.usage().payload_bytes, 0);
  EXPECT_TRUE(store.restore(kTwo, at(0, 8), payload_of(2, 8, 10'000), 2));
  EXPECT_SOUND(store);
}

TEST(ColdStore, APointerOutlivesTheStore) {
  std::shared_ptr<const KvPayload> held;
  {
    ColdStore store(room_for(1));
    ASSERT_TRUE(put(store, {}));
    held = store.find(key_of(1));
  }
  EXPECT_EQ(held->data, payload_of(1, 8, 10'000).data);
}

TEST(ColdStore, CountsAPayloadThatSessionsShareOnce) {
  ColdStore store(room_for(1) + tokens_cost(8));
  ASSERT_TRUE(put(store, {}));
  const auto r = put(store, {.session = kTwo, .begin = 40});
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->has_payload);
  EXPECT_EQ(store.usage().payload_bytes, 10'000);
  EXPECT_EQ(store.usage().cold_tokens, 16);
  EXPECT_EQ(store.fetch(kOne, at(0, 8), 2), store.fetch(kTwo, at(40, 8), 2));
  store.erase(kOne);
  EXPECT_NE(store.find(key_of(1)), nullptr);
  EXPECT_EQ(store.usage().cold_tokens, 8);
  EXPECT_SOUND(store);
  store.erase(kTwo);
  EXPECT_EQ(store.usage().used_bytes(), 0);
  EXPECT_SOUND(store);
}

TEST(ColdStore, WhatOneSessionGivesBackAllThatShareItHave) {
  ColdStore store(room_for(2));
  ASSERT_TRUE(store.put(kOne, at(0, 8), {}, {}, key_of(1), tokens_of(1, 8), {}, 1));
  ASSERT_TRUE(store.put(kTwo, at(8, 8), {}, {}, key_of(1), tokens_of(1, 8), {}, 1));
  EXPECT_EQ(store.usage().dropped_tokens, 16);
  ASSERT_TRUE(store.restore(kOne, at(0, 8), payload_of(1, 8, 100), 2));
  EXPECT_TRUE(store.record(kTwo, at(8, 8))->has_payload);
  EXPECT_EQ(store.usage().cold_tokens, 16);
  EXPECT_SOUND(store);
}

TEST(ColdStore, ASharedPayloadIsAsPreciousAsItsMostPreciousUse) {
  ColdStore store(room_for(2) + 2 * tokens_cost(8));
  ASSERT_TRUE(put(store, {.begin = 0, .n = 1}));
  ASSERT_TRUE(put(store, {.begin = 8, .n = 2, .now = 2}));
  ASSERT_TRUE(put(store, {.session = kTwo, .n = 1, .cls = CacheClass::task_pinned}));
  ASSERT_TRUE(put(store, {.begin = 16, .n = 3, .now = 3}));
  EXPECT_NE(store.find(key_of(1)), nullptr);
  EXPECT_EQ(store.find(key_of(2)), nullptr);
}

TEST(ColdStore, AGrowingChargeDropsPayloadsThenIsRefused) {
  ColdStore store(room_for(3));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        put(store, {.begin = i * 8, .n = static_cast<std::uint64_t>(i + 1), .now = static_cast<std::uint64_t>(i)}));
  }
  ASSERT_TRUE(store.charge(kOne, 5'000));
  EXPECT_EQ(store.usage().drops, 1U);
  EXPECT_EQ(store.find(key_of(1)), nullptr);
  ASSERT_TRUE(store.charge(kOne, 10'001));
  EXPECT_EQ(store.usage().drops, 2U);
  const auto refused = store.charge(kOne, 30'001);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::host_budget_exceeded);
  EXPECT_EQ(store.usage().charged_bytes, 10'001);
  EXPECT_EQ(store.usage().drops, 2U);
  ASSERT_TRUE(store.charge(kOne, 30'000));
  EXPECT_EQ(store.usage().used_bytes(), room_for(3));
  ASSERT_TRUE(store.charge(kOne, 1));
  EXPECT_EQ(store.usage().charged_bytes, 1);
  EXPECT_SOUND(store);
  store.erase(kOne);
  EXPECT_EQ(store.usage().used_bytes(), 0);
}

TEST(ColdStore, EraseOfASessionWithTheSameContentTwiceLeavesCleanBooks) {
  ColdStore store(room_for(3));
  ASSERT_TRUE(put(store, {.begin = 0, .n = 1}));
  ASSERT_TRUE(put(store, {.begin = 8, .n = 1}));
  ASSERT_TRUE(put(store, {.session = kTwo, .begin = 0, .n = 1}));
  EXPECT_SOUND(store);
  store.erase(kOne);
  EXPECT_SOUND(store);
  EXPECT_EQ(store.usage().used_bytes(), room_for(1));
  store.erase(SessionId{99});
  EXPECT_SOUND(store);
}

/// Streams `blocks` blocks of 96 tokens through a store that is full with half as many of `old_class`; seconds.
double stream_through(std::int64_t blocks, CacheClass old_class, std::uint64_t& drops) {
  constexpr std::size_t kBytes = 1'024;
  const std::int64_t old = blocks / 2;
  ColdStore store((blocks + old) * tokens_cost(96) + old * static_cast<std::int64_t>(kBytes));
  EXPECT_TRUE(store.charge(kOne, blocks * tokens_cost(96)));
  for (std::int64_t i = 0; i < old; ++i) {
    EXPECT_TRUE(put(store, {.session = kTwo,
                            .begin = i * 96,
                            .n = static_cast<std::uint64_t>(1'000'000 + i),
                            .cls = old_class,
                            .size = 96,
                            .bytes = kBytes}));
  }
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < blocks; ++i) {
    // Room for the next block's tokens, not for its payload.
    EXPECT_TRUE(store.charge(kOne, (blocks - i - 1) * tokens_cost(96)));
    EXPECT_TRUE(put(store, {.begin = i * 96, .n = static_cast<std::uint64_t>(i), .size = 96, .bytes = kBytes}));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_SOUND(store);
  drops = store.usage().drops;
  return took.count();
}

TEST(ColdStore, StreamingThroughAFullStoreStaysCheap) {
  std::uint64_t drops = 0;
  // A million tokens: 10,000 blocks.
  const double dropping = stream_through(10'000, CacheClass::volatile_, drops);
  EXPECT_GT(drops, 9'000U);
  const double refusing = stream_through(10'000, CacheClass::task_pinned, drops);
  EXPECT_EQ(drops, 0U);
  RecordProperty("dropping_us", static_cast<int>(dropping * 1e6));
  RecordProperty("refusing_us", static_cast<int>(refusing * 1e6));
  EXPECT_LT(dropping, 1.0);
  EXPECT_LT(refusing, 1.0);
}

/// A tier that keeps everything, until it is told not to.
class MemoryTier final : public PayloadTier {
 public:
  bool holds(const BlockKey& key) const override { return kept.contains(key); }
  Status write(const BlockKey& key, const KvPayload& payload) override {
    if (full) return fail(ErrorCode::disk_full, "Full.");
    kept.emplace(key, payload);
    return {};
  }
  Result<KvPayload> read(const BlockKey& key) override {
    if (damaged) {
      kept.erase(key);
      return fail(ErrorCode::state_damaged, "Damaged.");
    }
    return kept.at(key);
  }
  std::unordered_map<BlockKey, KvPayload> kept;
  bool full = false;
  bool damaged = false;
};

TEST(ColdStoreWithTier, WhatLeavesRamComesBackFromBelow) {
  MemoryTier tier;
  ColdStore store(room_for(2), &tier);
  for (std::uint64_t n = 0; n < 2; ++n) ASSERT_TRUE(put(store, {.begin = static_cast<std::int64_t>(8 * n), .n = n}));
  const auto third = put(store, {.begin = 16, .n = 2, .now = 2});
  ASSERT_TRUE(third);
  EXPECT_TRUE(third->has_payload);
  EXPECT_EQ(tier.kept.size(), 3U);
  EXPECT_EQ(store.usage().cold_tokens, 24);
  EXPECT_EQ(store.usage().dropped_tokens, 0);
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t n = 0; n < 3; ++n) {
      const auto got = store.fetch(kOne, at(static_cast<std::int64_t>(8 * n), 8), 3);
      ASSERT_NE(got, nullptr);
      EXPECT_EQ(got->data, payload_of(n, 8, 10'000).data);
      EXPECT_LE(store.usage().used_bytes(), store.usage().budget_bytes);
      EXPECT_SOUND(store);
    }
  }
  EXPECT_TRUE(store.has(key_of(0)));
  EXPECT_FALSE(store.has(key_of(9)));
}

TEST(ColdStoreWithTier, ABlockPutWithoutPayloadFindsItBelow) {
  MemoryTier tier;
  tier.kept.emplace(key_of(1), payload_of(1, 8, 10'000));
  ColdStore store(room_for(2), &tier);
  Spec spec{.n = 1};
  spec.bytes = 0;
  const auto record = put(store, spec);
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->has_payload);
  EXPECT_EQ(record->payload_bytes, 0);
  ASSERT_NE(store.fetch(kOne, at(0, 8), 2), nullptr);
  EXPECT_EQ(store.record(kOne, at(0, 8))->payload_bytes, 10'000);
}

TEST(ColdStoreWithTier, AFullOrDamagedTierIsToldAndRamGoesOn) {
  MemoryTier tier;
  tier.full = true;
  ColdStore store(room_for(1) + tokens_cost(8), &tier);
  ASSERT_TRUE(put(store, {.n = 1}));
  EXPECT_EQ(store.take_tier_error()->code, ErrorCode::disk_full);
  EXPECT_FALSE(store.take_tier_error());
  EXPECT_NE(store.fetch(kOne, at(0, 8), 2), nullptr);
  tier.full = false;
  tier.damaged = true;
  ASSERT_TRUE(put(store, {.begin = 8, .n = 2, .now = 0}));  // not dear enough for RAM
  EXPECT_EQ(store.record(kOne, at(8, 8))->payload_bytes, 0);
  EXPECT_EQ(store.fetch(kOne, at(8, 8), 3), nullptr);
  EXPECT_EQ(store.take_tier_error()->code, ErrorCode::state_damaged);
  EXPECT_FALSE(store.record(kOne, at(8, 8))->has_payload);
  EXPECT_EQ(store.usage().dropped_tokens, 8);
  EXPECT_SOUND(store);
}

TEST(ColdStoreWithTier, WithoutRoomInRamAPayloadIsReadFromBelowAllTheSame) {
  MemoryTier tier;
  tier.kept.emplace(key_of(1), payload_of(1, 8, 10'000));
  ColdStore store(tokens_cost(8), &tier);
  Spec spec{.n = 1};
  spec.bytes = 0;
  ASSERT_TRUE(put(store, spec));
  EXPECT_NE(store.fetch(kOne, at(0, 8), 2), nullptr);
  EXPECT_EQ(store.usage().payload_bytes, 0);
  EXPECT_SOUND(store);
}

}  // namespace
}  // namespace modeld
