// Fusing rankings (reciprocal rank fusion, Cormack et al. 2009, with a small constant: the top of each list decides).
#pragma once

#include <span>
#include <vector>

#include "recall/score.h"

namespace modeld {

/// Scores of all blocks by one selector.
using ScoreList = std::vector<double>;

/// final(b) = Σ over lists of 1/(k + rank in the list), ranks from 1; a block that a list scores ≤ 0 has no rank there
/// and gets nothing from it. Returns blocks best first; equal sums by the first list's score, then by index. REQUIRES
/// lists of one length.
std::vector<BlockScore> fuse_ranks(std::span<const ScoreList> lists, double k = 10.0);

/// How many of the fused blocks to read, 1 … max: as many as it takes to include the first choice of each list. When
/// all lists agree that is one — measured, a second passage then does more harm than good (docs/design.md) — and a
/// list without any score > 0 has no say. REQUIRES `fused` to come from these lists.
std::size_t blocks_to_read(std::span<const BlockScore> fused, std::span<const ScoreList> lists, std::size_t max);

}  // namespace modeld
