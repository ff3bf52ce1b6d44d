// R1: which blocks are hot. Given every block's range, class, recency and score and a budget in tokens, the plan says
// what stays, what leaves and what is fetched.
//
// Blocks come in in four steps: what always stays; pinned blocks (task_pinned, then repo_map; within a class by score,
// then recency, then stream order) up to their share; the best-scored of the rest, at most `retrieved_max`; nothing
// else. Each step ends at the first block that finds no room, so that a small block never overtakes a better one.
// Retrieved are also those best-scored that always stay: they need no room, but stand better elsewhere (placement.h).
//
// Invariants (property-tested):
//  - sinks and the recent window always stay, or the plan is refused;
//  - classes are never inverted: within the pinned share no repo_map block is hot while a task_pinned one is not, and
//  no
//    block is hot for its score while a pinned one that the share has room for is not. Retrieval never evicts them;
//  - pinned blocks take at most `pinned_share` of the budget for their class; what exceeds it is cold and reported. It
//  may
//    come back for its score, before a volatile block of equal score;
//  - a larger budget never makes fewer pinned tokens hot;
//  - hot tokens ≤ budget; keep, evict and fetch are disjoint; the plan is a function of its arguments alone, and which
//    blocks are hot (keep and fetch together) does not depend on which were.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "stream/segment.h"
#include "stream/tokens.h"

namespace modeld {

enum class Residence : std::uint8_t { hot, cold, dropped };

struct BlockView {
  StreamRange range;
  CacheClass cls = CacheClass::volatile_;
  Residence residence = Residence::cold;
  /// Of the sinks or of the recent window: always attended.
  bool always = false;
  /// Turn of last use; larger is more recent.
  std::uint64_t last_use = 0;
  /// Relevance to the question; ≤ 0 (and NaN) means not wanted now.
  double score = 0.0;
};

struct HotSetRequest {
  std::span<const BlockView> blocks;  // in stream order
  /// Tokens that blocks may take: the hot budget less question, answer reserve and other fixed costs.
  std::int32_t budget_tokens = 0;
  /// At most this many blocks are hot for their score alone.
  std::int32_t retrieved_max = 0;
  double pinned_share = 0.5;
};

/// Indices into the request's blocks, ascending, but `retrieved` which is best first.
struct HotSetPlan {
  std::vector<std::size_t> keep;
  std::vector<std::size_t> evict;
  std::vector<std::size_t> fetch;
  /// Those of keep and fetch that are hot for their score, or always and wanted for it too: best first.
  std::vector<std::size_t> retrieved;
  /// Pinned blocks that found no room and were not retrieved either.
  std::vector<std::size_t> pinned_cold;
  std::int32_t hot_tokens = 0;
};

/// REQUIRES ranges that are not empty, ascending and disjoint.
/// Errors: hot_too_small when sinks and recent window alone exceed the budget; bad_argument for a share outside 0 … 1.
Result<HotSetPlan> plan_hot_set(const HotSetRequest& request);

}  // namespace modeld
