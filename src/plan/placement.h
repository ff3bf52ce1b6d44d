// Places: where hot tokens stand for the model. Compact: sinks, pinned, recent, retrieved (best last), question.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "stream/tokens.h"

namespace modeld {

/// Where retrieved blocks go. Directly before the question, best last, reads best (docs/results); stream_order is for
/// comparison and calibration.
enum class BlockOrder : std::uint8_t { best_last, best_first, stream_order };

struct PlacementRequest {
  std::int32_t sink_tokens = 0;
  std::span<const StreamRange> pinned;  // stream order
  StreamRange recent;
  /// Best first. One that stands in the pinned text or the recent window is moved: no token has two places.
  std::span<const StreamRange> retrieved;
  BlockOrder order = BlockOrder::best_last;
  std::int32_t question_tokens = 0;
  std::int32_t reserve_tokens = 0;
  /// No place may reach it.
  std::int32_t place_limit = 0;
};

struct PlacedRange {
  StreamRange range;
  Place at;
};

struct Placement {
  std::vector<PlacedRange> pinned;
  PlacedRange recent;
  std::vector<PlacedRange> retrieved;  // in the order of their places
  /// Places in the pinned text and the recent window that what was moved leaves empty, ascending.
  std::vector<PlaceRange> holes;
  Place question;
  /// One past the last place that the answer's reserve may take.
  Place end;
};

/// Errors: hot_too_small when it does not fit under place_limit, with the numbers; bad_argument for ranges that overlap
/// (also with the sinks; a retrieved one may lie within a pinned one or the recent window) or end before they begin.
Result<Placement> place(const PlacementRequest& request);

}  // namespace modeld
