#include "engine/llama/ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace modeld {
namespace {

std::vector<BatchToken> run_of(SeqId seq, std::int32_t first, std::int32_t count) {
  std::vector<BatchToken> batch;
  for (std::int32_t i = 0; i < count; ++i) batch.push_back({.token = 1, .place = Place(first + i), .seq = seq});
  return batch;
}

PlaceRange places(std::int32_t begin, std::int32_t end) { return {Place(begin), Place(end)}; }

void fill(Ledger& ledger, SeqId seq, std::int32_t first, std::int32_t count) {
  const auto batch = run_of(seq, first, count);
  ASSERT_TRUE(ledger.check_compute(batch));
  ledger.enter_compute(batch);
}

void expect_misuse(const Status& status) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::engine_misuse) << to_text(status.error());
}

TEST(Ledger, AnEmptySequenceMayStartAnywhereAndThenGoesOnWithoutAGap) {
  Ledger ledger(2, 16);
  fill(ledger, 0, 1000, 3);
  EXPECT_EQ(ledger.extent(0), places(1000, 1003));
  expect_misuse(ledger.check_compute(run_of(0, 1004, 1)));
  expect_misuse(ledger.check_compute(run_of(0, 1002, 1)));
  EXPECT_TRUE(ledger.check_compute(run_of(0, 1003, 1)));
  auto gap = run_of(1, 0, 2);
  gap[1].place = Place(2);
  expect_misuse(ledger.check_compute(gap));
}

TEST(Ledger, RefusesSequencesThatDoNotExist) {
  Ledger ledger(2, 16);
  for (const SeqId seq : {-1, 2, 9999}) {
    expect_misuse(ledger.check_compute(run_of(seq, 0, 1)));
    expect_misuse(ledger.check_export(seq, places(0, 1)));
    expect_misuse(ledger.check_admit(seq, Place(0), 1));
    expect_misuse(ledger.check_rebase(seq, places(0, 1), 1));
    expect_misuse(ledger.check_share(seq, 0, places(0, 1)));
    expect_misuse(ledger.check_share(0, seq, places(0, 1)));
    EXPECT_TRUE(ledger.extent(seq).empty());
  }
}

TEST(Ledger, GivesOutNoMoreCellsThanItHas) {
  Ledger ledger(2, 8);
  fill(ledger, 0, 0, 6);
  const auto status = ledger.check_compute(run_of(1, 0, 3));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::engine_no_cells);
  EXPECT_EQ(ledger.check_admit(1, Place(0), 3).error().code, ErrorCode::engine_no_cells);
  EXPECT_TRUE(ledger.check_compute(run_of(1, 0, 2)));
}

TEST(Ledger, ASharedCellCountsOnceAndLivesUntilItsLastHolderLetsGo) {
  Ledger ledger(2, 8);
  fill(ledger, 0, 0, 6);
  ASSERT_TRUE(ledger.check_share(0, 1, places(0, 6)));
  ledger.enter_share(0, 1, places(0, 6));
  EXPECT_EQ(ledger.cells_used(), 6);
  ledger.enter_evict(0, places(0, 6));
  EXPECT_EQ(ledger.cells_used(), 6);
  EXPECT_TRUE(ledger.extent(0).empty());
  ledger.enter_evict(1, places(0, 3));
  EXPECT_EQ(ledger.cells_used(), 3);
  EXPECT_EQ(ledger.check_integrity(), "");
}

TEST(Ledger, SharedCellsAreNotMoved) {
  Ledger ledger(2, 8);
  fill(ledger, 0, 0, 4);
  ledger.enter_share(0, 1, places(2, 4));
  expect_misuse(ledger.check_rebase(0, places(0, 4), 10));
  EXPECT_TRUE(ledger.check_rebase(0, places(0, 2), 10));
  ledger.enter_evict(1, places(2, 4));
  EXPECT_TRUE(ledger.check_rebase(0, places(0, 4), 10));
}

TEST(Ledger, AMovedPlaceIsNotExported) {
  Ledger ledger(1, 8);
  fill(ledger, 0, 10, 4);
  ASSERT_TRUE(ledger.check_rebase(0, places(12, 14), 5));
  ledger.enter_rebase(0, places(12, 14), 5);
  EXPECT_EQ(ledger.extent(0), places(10, 19));
  EXPECT_TRUE(ledger.check_export(0, places(10, 12)));
  expect_misuse(ledger.check_export(0, places(17, 19)));
  // Back again is still not as computed.
  ledger.enter_rebase(0, places(17, 19), -5);
  expect_misuse(ledger.check_export(0, places(12, 14)));
}

TEST(Ledger, AMoveMayOverlapItselfButNothingElse) {
  Ledger ledger(1, 16);
  fill(ledger, 0, 0, 10);
  EXPECT_TRUE(ledger.check_rebase(0, places(5, 10), 3));
  expect_misuse(ledger.check_rebase(0, places(5, 10), -3));
  expect_misuse(ledger.check_rebase(0, places(0, 10), -1));
  expect_misuse(ledger.check_rebase(0, places(0, 10), std::numeric_limits<std::int32_t>::max() - 5));
  expect_misuse(ledger.check_rebase(0, places(20, 30), 1));
  ledger.enter_evict(0, places(2, 5));
  ASSERT_TRUE(ledger.check_rebase(0, places(5, 10), -3));
  ledger.enter_rebase(0, places(5, 10), -3);
  EXPECT_EQ(ledger.extent(0), places(0, 7));
}

TEST(Ledger, AHoleIsNeitherExportedNorShared) {
  Ledger ledger(2, 16);
  fill(ledger, 0, 0, 10);
  ledger.enter_evict(0, places(4, 6));
  expect_misuse(ledger.check_export(0, places(3, 7)));
  expect_misuse(ledger.check_share(0, 1, places(0, 10)));
  EXPECT_TRUE(ledger.check_export(0, places(6, 10)));
  EXPECT_TRUE(ledger.check_admit(0, Place(4), 2));
  expect_misuse(ledger.check_admit(0, Place(4), 3));
  expect_misuse(ledger.check_share(0, 0, places(0, 2)));
}

TEST(Ledger, CountsWhatAWindowStillSees) {
  Ledger ledger(1, 32);
  fill(ledger, 0, 0, 20);
  ledger.enter_evict(0, places(15, 17));
  EXPECT_EQ(ledger.held_within(0, 8), 6);
  EXPECT_EQ(ledger.held_within(0, 100), 18);
}

/// Any sequence of checked calls keeps the books right and the places as a plain model has them.
RC_GTEST_PROP(LedgerProperty, AnySequenceOfCheckedCallsKeepsTheBooksRight, ()) {
  constexpr std::int32_t kSequences = 3;
  constexpr std::int32_t kCells = 24;
  Ledger ledger(kSequences, kCells);
  std::vector<std::map<std::int32_t, bool>> model(kSequences);  // place → moved
  const auto steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const SeqId seq = *rc::gen::inRange(0, kSequences);
    const SeqId other = *rc::gen::inRange(0, kSequences);
    const std::int32_t begin = *rc::gen::inRange(0, 40);
    const std::int32_t count = *rc::gen::inRange(1, 8);
    const std::int32_t delta = *rc::gen::inRange(-12, 12);
    auto& mine = model[static_cast<std::size_t>(seq)];
    const PlaceRange range = places(begin, begin + count);
    switch (*rc::gen::inRange(0, 5)) {
      case 0: {
        const std::int32_t first = mine.empty() ? begin : mine.rbegin()->first + 1;
        const auto batch = run_of(seq, first, count);
        if (!ledger.check_compute(batch)) {
          RC_ASSERT(ledger.cells_used() + count > kCells);
          break;
        }
        ledger.enter_compute(batch);
        for (std::int32_t i = 0; i < count; ++i) mine[first + i] = false;
        break;
      }
      case 1:
        ledger.enter_evict(seq, range);
        mine.erase(mine.lower_bound(begin), mine.lower_bound(begin + count));
        break;
      case 2:
        if (!ledger.check_admit(seq, range.begin, count)) break;
        ledger.enter_admit(seq, range.begin, count, delta != 0);
        for (std::int32_t i = 0; i < count; ++i) RC_ASSERT(mine.emplace(begin + i, delta != 0).second);
        break;
      case 3: {
        if (!ledger.check_rebase(seq, range, delta)) break;
        ledger.enter_rebase(seq, range, delta);
        std::map<std::int32_t, bool> moved;
        for (auto it = mine.lower_bound(begin); it != mine.end() && it->first < begin + count; it = mine.erase(it))
          moved[it->first + delta] = it->second || delta != 0;
        for (const auto& [place, flag] : moved) RC_ASSERT(mine.emplace(place, flag).second);
        break;
      }
      default:
        if (!ledger.check_share(seq, other, range)) break;
        ledger.enter_share(seq, other, range);
        for (std::int32_t i = 0; i < count; ++i)
          RC_ASSERT(model[static_cast<std::size_t>(other)].emplace(begin + i, mine.at(begin + i)).second);
    }
    RC_ASSERT(ledger.check_integrity().empty());
    RC_ASSERT(ledger.cells_used() <= kCells);
    for (SeqId s = 0; s < kSequences; ++s) {
      const auto& held = model[static_cast<std::size_t>(s)];
      RC_ASSERT(ledger.held(s) == static_cast<std::int32_t>(held.size()));
      for (const auto& [place, moved] : held) {
        RC_ASSERT(ledger.holds(s, Place(place)));
        RC_ASSERT(ledger.check_export(s, places(place, place + 1)).has_value() == !moved);
      }
    }
  }
}

}  // namespace
}  // namespace modeld
