#include "plan/placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace modeld {
namespace {

std::vector<StreamRange> ordered(std::span<const StreamRange> best_first, BlockOrder order) {
  std::vector<StreamRange> ranges(best_first.begin(), best_first.end());
  switch (order) {
    case BlockOrder::best_first:
      break;
    case BlockOrder::best_last:
      std::reverse(ranges.begin(), ranges.end());
      break;
    case BlockOrder::stream_order:
      std::sort(ranges.begin(), ranges.end());
      break;
  }
  return ranges;
}

bool holds(const StreamRange& outer, const StreamRange& inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

/// A token attended twice would count twice in every softmax, so that no token may have two places.
Status check_disjoint(std::vector<StreamRange> ranges) {
  std::erase_if(ranges, [](const StreamRange& range) { return range.empty(); });
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (!ranges[i].overlaps(ranges[i - 1])) continue;
    return fail(ErrorCode::bad_argument,
                fmt::format("Token {} was to be placed twice. Choose passages that do not overlap one another, the "
                            "first tokens or the recent window.",
                            ranges[i].begin.get()),
                {{"token", ranges[i].begin.get()}});
  }
  return {};
}

Status check_ranges(const PlacementRequest& request) {
  if (request.sink_tokens < 0 || request.question_tokens < 0 || request.reserve_tokens < 0) {
    return fail(ErrorCode::bad_argument, "Sinks, question and reserve cannot have a negative number of tokens.");
  }
  std::vector<StreamRange> standing = {{StreamPos(0), StreamPos(request.sink_tokens)}, request.recent};
  standing.insert(standing.end(), request.pinned.begin(), request.pinned.end());
  std::vector<StreamRange> retrieved(request.retrieved.begin(), request.retrieved.end());
  for (const std::vector<StreamRange>* ranges : {&standing, &retrieved}) {
    for (const StreamRange& range : *ranges) {
      if (range.begin >= StreamPos(0) && range.end >= range.begin) continue;
      return fail(ErrorCode::bad_argument, "A range of tokens to be placed ends before it begins.",
                  {{"begin_tokens", range.begin.get()}, {"end_tokens", range.end.get()}});
    }
  }
  MODELD_TRY_VOID(check_disjoint(retrieved));
  // What is moved out of another range is that range's own; sinks never move.
  for (const StreamRange& range : retrieved) {
    const bool moved = std::any_of(standing.begin() + 1, standing.end(),
                                   [&](const StreamRange& other) { return holds(other, range); });
    if (!moved) standing.push_back(range);
  }
  return check_disjoint(std::move(standing));
}

/// Where retrieved ranges stood within the placed ones.
std::vector<PlaceRange> holes_in(std::span<const PlacedRange> standing, std::span<const StreamRange> retrieved) {
  std::vector<PlaceRange> holes;
  for (const PlacedRange& placed : standing) {
    for (const StreamRange& range : retrieved) {
      if (range.empty() || !holds(placed.range, range)) continue;
      const Place begin = placed.at + static_cast<std::int32_t>(range.begin - placed.range.begin);
      holes.push_back({begin, begin + static_cast<std::int32_t>(range.size())});
    }
  }
  std::sort(holes.begin(), holes.end(), [](const PlaceRange& a, const PlaceRange& b) { return a.begin < b.begin; });
  return holes;
}

std::int64_t needed_places(const PlacementRequest& request) {
  std::int64_t needed = request.recent.size();
  needed += std::int64_t{request.sink_tokens} + request.question_tokens + request.reserve_tokens;
  for (const StreamRange& range : request.pinned) needed += range.size();
  for (const StreamRange& range : request.retrieved) needed += range.size();
  return needed;
}

}  // namespace

Result<Placement> place(const PlacementRequest& request) {
  MODELD_TRY_VOID(check_ranges(request));
  const std::int64_t needed = needed_places(request);
  if (needed > request.place_limit) {
    return fail(ErrorCode::hot_too_small,
                fmt::format("This turn needs {} places and there are {}. Ask for fewer passages, a shorter answer or a "
                            "smaller recent window.",
                            needed, request.place_limit),
                {{"needed_tokens", needed}, {"place_limit_tokens", request.place_limit}});
  }
  // All sums fit an int32 from here on: needed ≤ place_limit.
  Placement placement;
  Place next(request.sink_tokens);
  const auto put = [&next](const StreamRange& range) {
    const PlacedRange placed{range, next};
    next += static_cast<std::int32_t>(range.size());
    return placed;
  };
  for (const StreamRange& range : request.pinned) placement.pinned.push_back(put(range));
  placement.recent = put(request.recent);
  std::vector<PlacedRange> standing = placement.pinned;
  standing.push_back(placement.recent);
  placement.holes = holes_in(standing, request.retrieved);
  for (const StreamRange& range : ordered(request.retrieved, request.order)) placement.retrieved.push_back(put(range));
  placement.question = next;
  placement.end = next + request.question_tokens + request.reserve_tokens;
  return placement;
}

}  // namespace modeld
