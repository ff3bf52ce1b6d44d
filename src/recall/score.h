// Scoring blocks by what the retrieval heads would attend: token-level attention scores of the question's tokens
// against un-rotated keys at one virtual distance, normalised by what each query attends anyway.
//
//   e(h,t,j)   = (R_d q_ht) · k_j / √D − lse_ht
//   sigmoid:   score(block) = Σ_h max_{j in block} max_t sigmoid(e)
//   full:      score(block) = Σ_h max_{j in block} max_t exp(s − logaddexp(lse_ht, LSE_all candidates of (h,t)))
//
// Measured in docs/design.md §7: sums over a block, means over question tokens and raw products are at chance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/geometry.h"
#include "recall/key_index.h"
#include "stream/tokens.h"

namespace modeld {

enum class ScoreRule : std::uint8_t { sigmoid, full };

/// The question's queries of one retrieval head, and their local log-sum-exp.
struct HeadQueries {
  HeadRef head;
  /// Index of its KV head in the key index.
  std::size_t kv_head = 0;
  /// tokens × key_dim, already un-rotated and turned by the virtual distance, in the layer's own RoPE.
  std::vector<float> queries;
  /// tokens: lse_ht, in units of scaled scores.
  std::vector<float> local_lse;
};

struct BlockScore {
  /// Index into the candidates.
  std::size_t block = 0;
  double score = 0.0;
};

/// Scores every candidate range. `candidates` are disjoint and ascending. Returns one score per candidate, same order.
/// Const, thread-safe; cost is linear in candidate tokens × question tokens × heads.
std::vector<double> score_blocks(const KeyIndex& index, std::span<const HeadQueries> queries,
                                 std::span<const StreamRange> candidates, ScoreRule rule);

/// The same, each head's share by itself: [query head][candidate]. Scores of more query tokens are the larger of both,
/// head by head: score_by_head(a and b) = max(score_by_head(a), score_by_head(b)).
std::vector<std::vector<double>> score_by_head(const KeyIndex& index, std::span<const HeadQueries> queries,
                                               std::span<const StreamRange> candidates, ScoreRule rule);
/// One score per candidate.
std::vector<double> sum_of_heads(std::span<const std::vector<double>> by_head);

/// The plain-loop version that the SIMD one is tested against.
std::vector<double> score_blocks_reference(const KeyIndex& index, std::span<const HeadQueries> queries,
                                           std::span<const StreamRange> candidates, ScoreRule rule);

/// log Σ_j exp(q · k_j / √D) over `keys` (rows × dim) for one query: what a probe's query attends in all.
/// `visible`: only the first `visible` rows count.
double log_sum_exp(std::span<const float> query, std::span<const float> keys, std::size_t visible);

}  // namespace modeld
