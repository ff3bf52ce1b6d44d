// Fusing two rankings (reciprocal rank fusion, Cormack et al. 2009, with a small constant: the top of each list
// decides).
#pragma once

#include <span>
#include <vector>

#include "recall/score.h"

namespace modeld {

/// final(b) = 1/(k + rank_a) + 1/(k + rank_b), ranks from 1; a block that a list scores ≤ 0 has no rank there and gets
/// nothing from it. Returns blocks best first; equal sums by the first list's score, then by index. Same length lists.
std::vector<BlockScore> fuse_ranks(std::span<const double> a, std::span<const double> b, double k = 10.0);

}  // namespace modeld
