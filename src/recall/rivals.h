// Selectors of the literature over the same index and the same queries as ours (score.h), for comparisons in an
// evaluation; no answer depends on them. Both keep one summary of a block for each KV head and never look at its
// tokens again:
//
//   quest:   bound(q, block) = Σ_d max(q_d · min_d, q_d · max_d), where min and max are taken, dimension by dimension,
//            over the block's keys: no key of the block has a larger product (Tang et al. 2024, arXiv 2406.10774)
//   means:   q · (mean of the block's keys)
//
//   score(block) = Σ_h max_t of either / √D
//
// Keys are un-rotated and queries turned by the virtual distance, as the index and HeadQueries have them: the paper
// takes keys as they stand in the cache, which a block that has no place yet cannot offer.
//
// Units: scaled attention scores, without softmax; a score may have any sign, and 0 means nothing special.
#pragma once

#include <span>
#include <vector>

#include "recall/key_index.h"
#include "recall/score.h"
#include "stream/tokens.h"

namespace modeld {

/// One score a candidate, same order. REQUIRES what score_blocks() requires, and candidates that are not empty. Cost:
/// linear in the candidates' tokens × KV heads, and in candidates × question tokens × heads. Const, thread-safe.
std::vector<double> score_quest(const KeyIndex& index, std::span<const HeadQueries> queries,
                                std::span<const StreamRange> candidates);
/// The same.
std::vector<double> score_means(const KeyIndex& index, std::span<const HeadQueries> queries,
                                std::span<const StreamRange> candidates);

}  // namespace modeld
