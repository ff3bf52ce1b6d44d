// From several selectors' scores to the blocks that are read: ranks fused (reciprocal rank fusion, Cormack et al. 2009,
// with a small constant: the top of each list decides), and how many of the fused blocks.
//
// Lists come in this order: heads, words, and meaning where there is an embedder.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "recall/score.h"

namespace modeld {

/// Scores of all blocks by one selector; a block that it scores ≤ 0 it knows nothing of.
using ScoreList = std::vector<double>;

/// final(b) = Σ over lists of weight/(k + rank in the list), ranks from 1; a block gets nothing from a list that knows
/// nothing of it. Weights are 1. Where there are three lists and they do not agree on a first one, the question shares
/// no words with what answers it: then meaning counts 1, heads 0.2 and words nothing (measured: docs/design.md §10).
/// Two of three agree only where that is no chance: `covered`, the share of the question's words (by weight) that the
/// best block by words holds, is at least a quarter, or no other block has more than half of the heads' best score.
/// Returns blocks best first; equal sums by the first list's score, then by index. REQUIRES lists of one length.
std::vector<BlockScore> fuse_ranks(std::span<const ScoreList> lists, double covered = 1.0, double k = 10.0);

/// A ranking of one list: its `count` best blocks, best first, equals in the order of the text. A score of 0 or one
/// that is no number says nothing of its block, which is then not ranked; one below 0 ranks last.
std::vector<std::size_t> best_blocks(const ScoreList& scores, std::size_t count);

/// How many of the fused blocks, from the first on, are as good as the first choices: each list that knows anything
/// scores them at least `share` of its best. Several such blocks are several values, versions or mentions of the same.
std::size_t blocks_alike(std::span<const BlockScore> fused, std::span<const ScoreList> lists, double share = 0.5);

/// The blocks to read, best first, 1 … max of them: as many of the fused ones as it takes to hold the first choice of
/// each list, and all that are alike; a first choice beyond `max` takes the last place. When all lists agree on one and
/// no other is like it, that is one: measured, a second passage then does more harm than good (docs/design.md §2). Of
/// blocks that are alike the later in the text comes first, so that the newest of several versions is read last.
/// REQUIRES `fused` to come from these lists.
std::vector<std::size_t> blocks_to_read(std::span<const BlockScore> fused, std::span<const ScoreList> lists,
                                        std::size_t max);

}  // namespace modeld
