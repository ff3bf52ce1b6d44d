// How a question of 30 tokens meets a million keys in less than a second, on one core.
//
// Keys are int8 with a scale of their own; queries become int16 (a rounding 256 times finer than int8's, so what is
// lost is lost by the index alone), and products add up exactly in int32. A block is taken in chunks that fit the
// first-level cache: a chunk's keys are widened once, then met by every query of every head that reads this KV head.
// Scores are in units of log2, so that the exponential is a polynomial and a shift.
//
// Both rules take one pass over the keys. What differs between a block's tokens for one query is s alone, so the best
// token of a block is the one with the largest s: the pass keeps max s per (block, query) and, for `full`, one running
// log-sum-exp per query; what the query attends anyway (lse) is taken off at the end, once per block.

#include "recall/score.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numbers>

#include "base/check.h"
#include "base/half.h"
#include "recall/score_kernels.h"

namespace modeld {
namespace {

using kernels::kGroup;
using kernels::kOutside;
using kernels::kStep;
constexpr std::size_t kTile = KeyIndex::kTile;

/// A chunk's int16 keys take 16 KiB for heads of 64, and no more than twice that for wider ones.
std::size_t chunk_tokens(std::size_t key_dim) {
  return std::clamp<std::size_t>(8192 / key_dim / kStep * kStep, kStep, 128);
}

struct PackedQueries {
  std::size_t count = 0;
  std::size_t padded = 0;
  std::vector<std::int32_t> pairs;  // group, pair of dimensions, query within the group: two int16
  std::vector<float> scales;        // brings a product to a score in log2
};

PackedQueries pack(const HeadQueries& head, std::size_t dim) {
  PackedQueries packed;
  packed.count = head.local_lse.size();
  packed.padded = (packed.count + kGroup - 1) / kGroup * kGroup;
  packed.pairs.assign(packed.padded * dim / 2, 0);
  packed.scales.assign(packed.padded, 0.0F);
  // |key| <= 127, so the sum of `dim` products stays within int32. For up to 512 dimensions this is all of int16.
  const auto limit =
      std::min<std::int64_t>(std::numeric_limits<std::int16_t>::max(),
                             std::numeric_limits<std::int32_t>::max() / (127 * static_cast<std::int64_t>(dim)));
  MODELD_CHECK(limit > 0);
  for (std::size_t q = 0; q < packed.count; ++q) {
    const float* query = head.queries.data() + q * dim;
    double largest = 0.0;
    for (std::size_t d = 0; d < dim; ++d) {
      MODELD_CHECK(std::isfinite(query[d]));
      largest = std::max(largest, std::fabs(double{query[d]}));
    }
    if (largest == 0.0) continue;
    const double step = largest / static_cast<double>(limit);
    packed.scales[q] = static_cast<float>(step * std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
    std::int32_t* out = packed.pairs.data() + q / kGroup * kGroup * dim / 2 + q % kGroup;
    for (std::size_t p = 0; p < dim / 2; ++p) {
      const std::int16_t two[2] = {static_cast<std::int16_t>(std::lrint(double{query[2 * p]} / step)),
                                   static_cast<std::int16_t>(std::lrint(double{query[2 * p + 1]} / step))};
      std::memcpy(out + p * kGroup, two, sizeof two);
    }
  }
  return packed;
}

/// One query head on its way through the blocks.
struct HeadRun {
  const HeadQueries* head = nullptr;
  PackedQueries queries;
  std::vector<float> block_max;         // block × count, in log2
  std::vector<kernels::PowerSum> sums;  // per query, over all candidates
};

/// Takes the blocks of one KV head, chunk by chunk, past all its query heads.
class Pass {
 public:
  Pass(const KeyIndex& index, std::size_t kv_head, ScoreRule rule)
      : index_(index),
        kv_head_(kv_head),
        rule_(rule),
        pairs_(static_cast<std::size_t>(index.key_dim()) / 2),
        wide_(chunk_tokens(2 * pairs_)),
        keys_(pairs_ * wide_ * 2),
        scales_(wide_),
        bias_(wide_) {}

  void block(StreamRange range, std::size_t number, std::span<HeadRun> runs) {
    const auto begin = static_cast<std::size_t>(range.begin.get());
    const auto end = static_cast<std::size_t>(range.end.get());
    // Chunks start at tile borders: the tokens of a border tile that are not the block's are kept out by their bias.
    for (std::size_t at = begin / kTile * kTile; at < end; at += wide_) {
      load(at, begin, end);
      for (HeadRun& run : runs) fold(number, run);
    }
  }

 private:
  void load(std::size_t at, std::size_t begin, std::size_t end) {
    const std::size_t tiles = (std::min(end - at, wide_) + kTile - 1) / kTile;
    tokens_ = (tiles * kTile + kStep - 1) / kStep * kStep;
    for (std::size_t i = 0; i < tiles; ++i) {
      const auto t = static_cast<std::int64_t>(at / kTile + i);
      kernels::widen_tile(index_.tile(kv_head_, t), pairs_, wide_, keys_.data() + i * kTile * 2);
      const std::uint16_t* halves = index_.tile_scales(kv_head_, t);
      for (std::size_t lane = 0; lane < kTile; ++lane) scales_[i * kTile + lane] = f32_from_f16(halves[lane]);
    }
    for (std::size_t j = 0; j < tokens_; ++j) bias_[j] = at + j >= begin && at + j < end ? 0.0F : kOutside;
  }

  void fold(std::size_t number, HeadRun& run) {
    const PackedQueries& queries = run.queries;
    scores_.resize(std::max(scores_.size(), queries.padded * wide_));
    const kernels::Chunk chunk{keys_.data(), pairs_, wide_, tokens_, scales_.data(), bias_.data()};
    kernels::score_chunk(chunk, queries.pairs.data(), queries.scales.data(), queries.padded, scores_.data());
    float* largest = run.block_max.data() + number * queries.count;
    if (rule_ == ScoreRule::full) {
      kernels::fold_max_and_sum(scores_.data(), queries.count, wide_, tokens_, largest, run.sums.data());
    } else {
      kernels::fold_max(scores_.data(), queries.count, wide_, tokens_, largest);
    }
  }

  const KeyIndex& index_;
  std::size_t kv_head_;
  ScoreRule rule_;
  std::size_t pairs_;
  std::size_t wide_;
  std::size_t tokens_ = 0;
  std::vector<std::int16_t> keys_;
  std::vector<float> scales_;
  std::vector<float> bias_;
  std::vector<float> scores_;
};

double log_add_exp(double a, double b) {
  const double larger = std::max(a, b);
  if (std::isinf(larger)) return larger;
  return larger + std::log1p(std::exp(std::min(a, b) - larger));
}

/// What is taken off query t's scores before the best is chosen, natural log.
std::vector<double> attended_anyway(const HeadRun& run, ScoreRule rule) {
  std::vector<double> out(run.head->local_lse.begin(), run.head->local_lse.end());
  if (rule == ScoreRule::sigmoid) return out;
  for (std::size_t t = 0; t < out.size(); ++t) {
    const kernels::PowerSum& all = run.sums[t];
    if (all.sum > 0.0) out[t] = log_add_exp(out[t], (double{all.largest} + std::log2(all.sum)) * std::numbers::ln2);
  }
  return out;
}

/// The head's share of each candidate's score.
std::vector<double> head_scores(const HeadRun& run, std::span<const StreamRange> candidates, ScoreRule rule) {
  const std::vector<double> off = attended_anyway(run, rule);
  std::vector<double> scores(candidates.size(), 0.0);
  for (std::size_t b = 0; b < candidates.size(); ++b) {
    if (candidates[b].empty()) continue;
    double best = -std::numeric_limits<double>::infinity();
    for (std::size_t t = 0; t < off.size(); ++t) {
      best = std::max(best, double{run.block_max[b * off.size() + t]} * std::numbers::ln2 - off[t]);
    }
    scores[b] = rule == ScoreRule::sigmoid ? 1.0 / (1.0 + std::exp(-best)) : std::exp(best);
  }
  return scores;
}

void check_candidates(const KeyIndex& index, std::span<const StreamRange> candidates) {
  StreamPos past{0};
  for (const StreamRange& range : candidates) {
    MODELD_CHECK(past <= range.begin && range.begin <= range.end);
    past = range.end;
  }
  MODELD_CHECK(past.get() <= index.tokens());
}

}  // namespace

std::vector<std::vector<double>> score_by_head(const KeyIndex& index, std::span<const HeadQueries> queries,
                                               std::span<const StreamRange> candidates, ScoreRule rule) {
  check_candidates(index, candidates);
  const auto dim = static_cast<std::size_t>(index.key_dim());
  std::map<std::size_t, std::vector<HeadRun>> by_kv_head;
  for (const HeadQueries& head : queries) {
    MODELD_CHECK(head.kv_head < index.kv_heads().size());
    MODELD_CHECK(head.queries.size() == head.local_lse.size() * dim);
    if (!head.local_lse.empty()) by_kv_head[head.kv_head].push_back({&head, {}, {}, {}});
  }
  std::vector<std::vector<double>> scores(queries.size(), std::vector<double>(candidates.size(), 0.0));
  for (auto& [kv_head, runs] : by_kv_head) {
    for (HeadRun& run : runs) {
      run.queries = pack(*run.head, dim);
      run.block_max.assign(candidates.size() * run.queries.count, kOutside);
      run.sums.assign(rule == ScoreRule::full ? run.queries.count : 0, {});
    }
    Pass pass(index, kv_head, rule);
    for (std::size_t b = 0; b < candidates.size(); ++b) {
      if (!candidates[b].empty()) pass.block(candidates[b], b, runs);
    }
    for (const HeadRun& run : runs)
      scores[static_cast<std::size_t>(run.head - queries.data())] = head_scores(run, candidates, rule);
    runs.clear();
  }
  return scores;
}

std::vector<double> sum_of_heads(std::span<const std::vector<double>> by_head) {
  if (by_head.empty()) return {};
  std::vector<double> sums(by_head.front().size(), 0.0);
  for (const std::vector<double>& head : by_head) {
    MODELD_CHECK(head.size() == sums.size());
    for (std::size_t b = 0; b < sums.size(); ++b) sums[b] += head[b];
  }
  return sums;
}

std::vector<double> score_blocks(const KeyIndex& index, std::span<const HeadQueries> queries,
                                 std::span<const StreamRange> candidates, ScoreRule rule) {
  if (queries.empty()) return std::vector<double>(candidates.size(), 0.0);
  return sum_of_heads(score_by_head(index, queries, candidates, rule));
}

double log_sum_exp(std::span<const float> query, std::span<const float> keys, std::size_t visible) {
  const std::size_t dim = query.size();
  MODELD_CHECK(dim > 0 && keys.size() % dim == 0 && visible <= keys.size() / dim);
  if (visible == 0) return -std::numeric_limits<double>::infinity();
  std::vector<float> dots((visible + kStep - 1) / kStep * kStep, kOutside);
  kernels::dot_rows(query.data(), keys.data(), dim, visible, dots.data());
  const auto scale = static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
  for (std::size_t row = 0; row < visible; ++row) dots[row] *= scale;
  float largest = kOutside;
  kernels::PowerSum sum;
  kernels::fold_max_and_sum(dots.data(), 1, dots.size(), dots.size(), &largest, &sum);
  return (double{sum.largest} + std::log2(sum.sum)) * std::numbers::ln2;
}

}  // namespace modeld
