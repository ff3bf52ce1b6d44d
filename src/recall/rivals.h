// Selectors of the literature over the same index and the same queries as ours (score.h), for comparisons in an
// evaluation; no answer depends on them. Both look at summaries of the keys in each KV head, never at a token:
//
//   quest:   bound(q, page) = Σ_d max(q_d · min_d, q_d · max_d), min and max taken dimension by dimension over the
//            page's keys: no key of the page has a larger product (Tang et al. 2024, arXiv 2406.10774)
//            score(block) = Σ_h max_t max_{pages of the block} bound / √D
//   means:   score(block) = Σ_h mean_t q · (mean of the block's keys) / √D
//
// The papers score one query, that of the token being written. Over a question's tokens each has here what serves it
// better, of largest and mean (48 questions at 16k tokens, recall@8: quest .29 and .25, means .17 and .25; the last
// token alone .23 and .19; shares of a softmax over blocks .19 for both).
//
// Keys are un-rotated and queries turned by the virtual distance, as the index and HeadQueries have them: the paper
// takes keys as they stand in the cache, which a block that has no place yet cannot offer.
//
// Units: scaled attention scores, without softmax; a score may have any sign, and 0 means nothing special.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recall/key_index.h"
#include "recall/score.h"
#include "stream/tokens.h"

namespace modeld {

/// Tokens of a page in the paper.
inline constexpr std::int64_t kQuestPage = 16;

/// One score a candidate, same order; 0 for all without queries. Blocks are cut into pages of `page` tokens from their
/// own beginning; one that is not longer is one page. REQUIRES what score_blocks() requires, candidates that are not
/// empty, and page ≥ 1. Cost: linear in tokens × KV heads, and in pages × question tokens × heads. Const, thread-safe.
std::vector<double> score_quest(const KeyIndex& index, std::span<const HeadQueries> queries,
                                std::span<const StreamRange> candidates, std::int64_t page);
/// The same, of whole blocks.
std::vector<double> score_means(const KeyIndex& index, std::span<const HeadQueries> queries,
                                std::span<const StreamRange> candidates);

}  // namespace modeld
