// KV surgery: out, away, back in at the same or another place, moved, and holes.
#include "conformance/fixture.h"

namespace modeld {
namespace {

TEST_P(KvRules, BackInPlaceIsBitEqual) {
  const auto prompt = story(120);
  const auto tail = std::span(prompt).subspan(110);
  feed(std::span(prompt).first(110));
  const Logits untouched = feed(tail);
  open();
  feed(std::span(prompt).first(110));
  const KvPayload middle = take_out(0, 30, 80);
  evict(0, 30, 80);
  EXPECT_EQ(engine().cells_used(), 60);
  expect_extent(0, 0, 110);
  admit(0, middle, 30);
  EXPECT_EQ(engine().cells_used(), 110);
  EXPECT_EQ(feed(tail), untouched);
}

TEST_P(KvRules, AnAdmittedPayloadComesOutAgainAsItWentIn) {
  const auto prompt = story(64);
  feed(prompt);
  const KvPayload payload = take_out(0, 16, 48);
  evict(0, 0, 64);
  admit(0, payload, 16);
  EXPECT_EQ(take_out(0, 16, 48).data, payload.data) << "in place it is still pristine";
  EXPECT_EQ(take_out(0, 20, 30).places, places(20, 30));
}

// Everything from place 0 on is moved by 137 and compared with the same text computed there: RoPE is relative, so the
// two differ by the rounding of moved keys alone.
TEST_P(KvRules, AdmittedElsewhereEqualsRecomputingThere) {
  const auto [prompt, tail] = unfinished();
  const auto count = static_cast<std::int32_t>(prompt.size());
  feed(prompt);
  const KvPayload first = take_out(0, 0, 60);
  const KvPayload second = take_out(0, 60, count);
  evict(0, 0, count);
  admit(0, second, 60 + 137);
  admit(0, first, 137);
  expect_extent(0, 137, 137 + count);
  const auto moved = feed_all(tail);
  open();
  feed(prompt, 0, 137);
  expect_near(feed_all(tail), moved, "admitted 137 places on");
}

TEST_P(KvRules, AdmittedIntoAnotherSequenceEqualsBeingComputedThere) {
  const auto [prompt, tail] = unfinished();
  feed(prompt);
  const KvPayload payload = take_out(0, 0, static_cast<std::int32_t>(prompt.size()));
  const auto here = feed_all(tail);
  admit(3, payload, 0);
  expect_near(here, feed_all(tail, 3), "admitted into another sequence");
}

TEST_P(KvRules, WhatWasAdmittedElsewhereIsNotPristine) {
  feed(story(40));
  const KvPayload payload = take_out(0, 0, 40);
  admit(1, payload, 7);
  must_refuse(ErrorCode::engine_misuse, "export of a moved copy",
              [&] { return engine().export_range(1, places(7, 47)); });
  EXPECT_EQ(take_out(0, 0, 40).data, payload.data);
}

TEST_P(KvRules, MovedEqualsComputedThere) {
  const auto [prompt, tail] = unfinished();
  const auto count = static_cast<std::int32_t>(prompt.size());
  feed(prompt, 0, 200);
  must(engine().rebase(0, places(200, 200 + count), -190));
  expect_extent(0, 10, 10 + count);
  EXPECT_EQ(engine().cells_used(), count);
  const auto moved = feed_all(tail);
  open();
  feed(prompt, 0, 10);
  expect_near(feed_all(tail), moved, "moved 190 places back");
}

TEST_P(Rules, MovedKvIsNeverExported) {
  feed(story(60));
  evict(0, 20, 30);
  must(engine().rebase(0, places(30, 60), -10));
  expect_extent(0, 0, 50);
  EXPECT_EQ(take_out(0, 0, 20).places, places(0, 20)) << "what stayed is still pristine";
  must_refuse(ErrorCode::engine_misuse, "export of moved places",
              [&] { return engine().export_range(0, places(20, 50)); });
  must_refuse(ErrorCode::engine_misuse, "export across the seam",
              [&] { return engine().export_range(0, places(10, 30)); });
  must(engine().rebase(0, places(20, 50), 10));
  must_refuse(ErrorCode::engine_misuse, "export after moving back",
              [&] { return engine().export_range(0, places(30, 60)); });
}

TEST_P(Rules, ARunMayMoveOverItsOwnPlaces) {
  const auto [prompt, tail] = unfinished();
  const auto count = static_cast<std::int32_t>(prompt.size());
  feed(prompt, 0, 5);
  must(engine().rebase(0, places(5, 5 + count), 3));
  expect_extent(0, 8, 8 + count);
  const auto moved = feed_all(tail);
  open();
  feed(prompt, 0, 8);
  expect_near(feed_all(tail), moved, "moved by less than its length");
}

// The tail begins as the middle part does: with the middle resident, its continuation is likely; without, it is
// unknown.
TEST_P(KvRules, AHoleEqualsNeverHavingHadTheTokens) {
  const auto prompt = story(120);
  const auto tail = std::span(prompt).subspan(50, 10);
  feed(prompt);
  const KvPayload front = take_out(0, 0, 40);
  const KvPayload back = take_out(0, 80, 120);
  must(engine().share(0, 1, places(0, 120)));
  const Logits whole = feed(tail, 1);
  evict(0, 40, 80);
  expect_extent(0, 0, 120);
  const Logits holed = feed(tail);
  EXPECT_GT(divergence(whole, holed), 2.0 * bound()) << "the evicted range must have mattered";
  admit(2, front, 0);
  admit(2, back, 80);
  EXPECT_EQ(engine().extent(2), places(0, 120));
  expect_near(holed, feed(tail, 2), "a hole against tokens that were never there");
}

TEST_P(Rules, AHoleIsFilledByAdmittingAgain) {
  const auto prompt = story(120);
  const auto tail = std::span(prompt).subspan(50, 10);
  feed(prompt);
  const KvPayload middle = take_out(0, 40, 80);
  must(engine().share(0, 1, places(0, 120)));
  const Logits whole = feed(tail, 1);
  evict(1, 0, 200);
  evict(0, 40, 80);
  feed(tail);
  evict(0, 120, 130);
  admit(0, middle, 40);
  EXPECT_EQ(engine().cells_used(), 120);
  expect_near(whole, feed(tail), "hole filled again");
}

TEST_P(Rules, EvictIgnoresPlacesThatAreNotResident) {
  feed(story(30), 0, 50);
  evict(0, 0, 50);
  EXPECT_EQ(engine().cells_used(), 30);
  evict(0, 70, 500);
  expect_extent(0, 50, 70);
  evict(0, 60, 60);
  EXPECT_EQ(engine().cells_used(), 20);
  evict(1, 0, 100);
  evict(0, 50, 70);
  expect_extent(0, 0, 0);
  feed(story(10), 0, 3);
  expect_extent(0, 3, 13);
}

TEST_P(Rules, ManyRoundsOfSurgeryKeepTheBooksRight) {
  open(256, 2, 64);
  const auto text = story(200);
  std::vector<KvPayload> parked;
  std::int32_t place = 0;
  for (std::size_t round = 0; round < 8; ++round) {
    feed(std::span(text).subspan(round * 20, 20), 0, 0);
    parked.push_back(take_out(0, place, place + 20));
    place += 20;
    if (round >= 3) evict(0, place - 60, place - 40);
    if (round >= 4) {
      admit(1, parked[round - 4], static_cast<std::int32_t>(round) * 20);
      evict(1, 0, static_cast<std::int32_t>(round) * 20 - 20);
    }
  }
  EXPECT_EQ(engine().cells_used(), 60 + 40);
  must(engine().rebase(1, places(0, 1000), -100));
  expect_extent(1, 20, 60);
  feed(std::span(text).first(5), 1);
  expect_extent(1, 20, 65);
}

}  // namespace
}  // namespace modeld
