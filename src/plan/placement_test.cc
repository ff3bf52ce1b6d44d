#include "plan/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace modeld {
namespace {

StreamRange range(std::int64_t begin, std::int64_t end) { return {StreamPos(begin), StreamPos(end)}; }

/// Disjoint ranges of a stream, dealt out to the parts of a turn.
struct Turn {
  std::vector<StreamRange> pinned;
  std::vector<StreamRange> retrieved;
  PlacementRequest request;
};

void fill(Turn& turn) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const auto below = [&](std::size_t n) { return static_cast<std::int32_t>(random() % n); };
  turn.request.sink_tokens = below(100);
  std::int64_t at = turn.request.sink_tokens;
  for (std::int32_t count = below(20); count > 0; --count) {
    at += below(2) * below(5000);
    const StreamRange next = range(at, at + 1 + below(128));
    at = next.end.get();
    (below(2) == 0 ? turn.pinned : turn.retrieved).push_back(next);
  }
  turn.request.recent = range(at, at + below(600));
  // Some of what stands there is moved.
  std::vector<StreamRange> standing = turn.pinned;
  standing.push_back(turn.request.recent);
  for (const StreamRange& outer : standing) {
    if (outer.size() < 2 || below(4) != 0) continue;
    const std::int64_t begin = outer.begin.get() + below(static_cast<std::size_t>(outer.size()) - 1);
    turn.retrieved.push_back(range(begin, begin + 1 + below(static_cast<std::size_t>(outer.end.get() - begin))));
  }
  std::shuffle(turn.retrieved.begin(), turn.retrieved.end(), random);
  turn.request.pinned = turn.pinned;
  turn.request.retrieved = turn.retrieved;
  turn.request.order = static_cast<BlockOrder>(below(3));
  turn.request.question_tokens = below(300);
  turn.request.reserve_tokens = below(300);
  turn.request.place_limit = *rc::gen::element(100, 2000, 1 << 20);
}

std::int64_t needed(const Turn& turn) {
  std::int64_t sum = turn.request.recent.size() + turn.request.sink_tokens;
  sum += turn.request.question_tokens + turn.request.reserve_tokens;
  for (const StreamRange& r : turn.pinned) sum += r.size();
  for (const StreamRange& r : turn.retrieved) sum += r.size();
  return sum;
}

RC_GTEST_PROP(Placement, NoTwoTokensShareAPlaceAndNoneReachesTheLimit, ()) {
  Turn turn;
  fill(turn);
  const auto placement = place(turn.request);
  RC_ASSERT(placement.has_value() == (needed(turn) <= turn.request.place_limit));
  if (!placement) {
    RC_ASSERT(placement.error().code == ErrorCode::hot_too_small);
    RC_ASSERT(placement.error().numbers.at(0) == ErrorNumber("needed_tokens", needed(turn)));
    return;
  }
  // Sinks, pinned, recent, retrieved, question, reserve: one directly behind the other.
  std::vector<PlacedRange> in_order = placement->pinned;
  in_order.push_back(placement->recent);
  in_order.insert(in_order.end(), placement->retrieved.begin(), placement->retrieved.end());
  Place next(turn.request.sink_tokens);
  for (const PlacedRange& placed : in_order) {
    RC_ASSERT(placed.at == next);
    next += static_cast<std::int32_t>(placed.range.size());
  }
  RC_ASSERT(placement->question == next);
  RC_ASSERT(placement->end - next == turn.request.question_tokens + turn.request.reserve_tokens);
  RC_ASSERT(placement->end.get() <= turn.request.place_limit);
}

RC_GTEST_PROP(Placement, EveryRangeIsPlacedOnceInTheOrderAskedFor, ()) {
  Turn turn;
  fill(turn);
  turn.request.place_limit = 1 << 20;
  const Placement placement = place(turn.request).value();
  std::vector<StreamRange> expected = turn.retrieved;
  if (turn.request.order == BlockOrder::best_last) std::reverse(expected.begin(), expected.end());
  if (turn.request.order == BlockOrder::stream_order) std::sort(expected.begin(), expected.end());
  RC_ASSERT(placement.retrieved.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) RC_ASSERT(placement.retrieved[i].range == expected[i]);
  RC_ASSERT(placement.pinned.size() == turn.pinned.size());
  for (std::size_t i = 0; i < turn.pinned.size(); ++i) RC_ASSERT(placement.pinned[i].range == turn.pinned[i]);
  RC_ASSERT(placement.recent.range == turn.request.recent);
}

RC_GTEST_PROP(Placement, WhatIsMovedLeavesAHoleSoThatNoTokenHasTwoPlaces, ()) {
  Turn turn;
  fill(turn);
  turn.request.place_limit = 1 << 20;
  const Placement placement = place(turn.request).value();
  const auto in_hole = [&](Place at) {
    return std::any_of(placement.holes.begin(), placement.holes.end(),
                       [&](const PlaceRange& hole) { return hole.begin <= at && at < hole.end; });
  };
  std::map<std::int64_t, int> places;
  std::vector<PlacedRange> standing = placement.pinned;
  standing.push_back(placement.recent);
  for (const PlacedRange& placed : standing) {
    Place at = placed.at;
    for (StreamPos pos = placed.range.begin; pos < placed.range.end; ++pos, ++at)
      if (!in_hole(at)) ++places[pos.get()];
  }
  for (const PlacedRange& placed : placement.retrieved)
    for (StreamPos pos = placed.range.begin; pos < placed.range.end; ++pos) ++places[pos.get()];
  for (const auto& [token, count] : places) RC_ASSERT(count == 1);
  std::int64_t tokens = 0;
  std::vector<StreamRange> all = turn.pinned;
  all.push_back(turn.request.recent);
  for (const StreamRange& outer : all) tokens += outer.size();
  for (const StreamRange& one : turn.retrieved) {
    const bool moved =
        std::any_of(all.begin(), all.end(), [&](const StreamRange& outer) { return outer.overlaps(one); });
    tokens += moved ? 0 : one.size();
  }
  RC_ASSERT(std::ssize(places) == tokens);
}

TEST(Placement, TheBestBlockStandsDirectlyBeforeTheQuestion) {
  const std::vector<StreamRange> best_first = {range(500, 600), range(100, 164), range(900, 1000)};
  PlacementRequest request;
  request.sink_tokens = 64;
  request.recent = range(2000, 2100);
  request.retrieved = best_first;
  request.question_tokens = 20;
  request.reserve_tokens = 30;
  request.place_limit = 1000;
  const Placement placement = place(request).value();
  EXPECT_EQ(placement.retrieved.back().range, best_first.front());
  EXPECT_EQ(placement.retrieved.back().at + 100, placement.question);
  EXPECT_EQ(placement.question, Place(64 + 100 + 264));
  EXPECT_EQ(placement.end, placement.question + 50);
}

TEST(Placement, FitsToTheLastPlaceAndNotOneMore) {
  PlacementRequest request;
  request.sink_tokens = 60;
  request.recent = range(100, 130);
  request.question_tokens = 6;
  request.reserve_tokens = 4;
  request.place_limit = 100;
  EXPECT_TRUE(place(request));
  request.place_limit = 99;
  EXPECT_EQ(place(request).error().code, ErrorCode::hot_too_small);
}

TEST(Placement, RefusesTokensThatWouldHaveTwoPlaces) {
  const std::vector<StreamRange> in_sinks = {range(10, 80)};
  const std::vector<StreamRange> in_recent = {range(450, 514)};
  const std::vector<StreamRange> twice = {range(100, 164), range(163, 200)};
  const std::vector<StreamRange> backwards = {range(200, 100)};
  for (const auto* retrieved : {&in_sinks, &in_recent, &twice, &backwards}) {
    PlacementRequest request;
    request.sink_tokens = 64;
    request.recent = range(500, 600);
    request.retrieved = *retrieved;
    request.place_limit = 4096;
    EXPECT_EQ(place(request).error().code, ErrorCode::bad_argument);
  }
  PlacementRequest negative;
  negative.question_tokens = -1;
  negative.place_limit = 10;
  EXPECT_EQ(place(negative).error().code, ErrorCode::bad_argument);
}

TEST(Placement, AnEmptyRecentWindowIsNotInTheWay) {
  const std::vector<StreamRange> blocks = {range(64, 128)};
  PlacementRequest request;
  request.sink_tokens = 64;
  request.recent = range(100, 100);
  request.retrieved = blocks;
  request.place_limit = 4096;
  EXPECT_EQ(place(request).value().question, Place(128));
}

}  // namespace
}  // namespace modeld
