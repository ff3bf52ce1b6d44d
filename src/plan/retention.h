// What the cold store gives up when it is full: payloads of the least valuable blocks; their tokens and index stay.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stream/segment.h"

namespace modeld {

struct RetainedBlock {
  CacheClass cls = CacheClass::volatile_;
  /// Turn of last use; larger is more recent.
  std::uint64_t last_use = 0;
  /// Times it was fetched for a question.
  std::uint32_t fetches = 0;
  std::int64_t payload_bytes = 0;
  /// Hot or about to be: never dropped.
  bool held = false;
};

/// Indices of blocks to drop, least valuable first, so that at least `needed_bytes` are freed; empty if that is
/// impossible (nothing is dropped in vain). Order: volatile before repo_map before task_pinned; then fewer fetches;
/// then older use; then lower index. Pure.
std::vector<std::size_t> choose_drops(std::span<const RetainedBlock> blocks, std::int64_t needed_bytes);

}  // namespace modeld
