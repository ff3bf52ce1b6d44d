#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "recall/score.h"

// The formulas of score.h, written out with doubles and without tricks.

namespace modeld {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

double log_add_exp(double a, double b) {
  const double larger = std::max(a, b);
  if (larger == kNone) return kNone;
  return larger + std::log1p(std::exp(std::min(a, b) - larger));
}

/// s(t, j) for one block: token by query.
std::vector<double> scaled_scores(const KeyIndex& index, const HeadQueries& head, StreamRange block) {
  const std::vector<float> keys = index.keys(head.kv_head, block);
  const auto dim = static_cast<std::size_t>(index.key_dim());
  const std::size_t queries = head.local_lse.size();
  const std::size_t tokens = keys.size() / dim;
  std::vector<double> scores(tokens * queries);
  for (std::size_t j = 0; j < tokens; ++j) {
    for (std::size_t t = 0; t < queries; ++t) {
      double dot = 0.0;
      for (std::size_t d = 0; d < dim; ++d) {
        dot += double{head.queries[t * dim + d]} * double{keys[j * dim + d]};
      }
      scores[j * queries + t] = dot / std::sqrt(static_cast<double>(dim));
    }
  }
  return scores;
}

void add_sigmoid(const KeyIndex& index, const HeadQueries& head, std::span<const StreamRange> candidates,
                 std::vector<double>& out) {
  const std::size_t queries = head.local_lse.size();
  for (std::size_t b = 0; b < candidates.size(); ++b) {
    const std::vector<double> scores = scaled_scores(index, head, candidates[b]);
    double best = 0.0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double e = scores[i] - double{head.local_lse[i % queries]};
      best = std::max(best, 1.0 / (1.0 + std::exp(-e)));
    }
    out[b] += best;
  }
}

void add_full(const KeyIndex& index, const HeadQueries& head, std::span<const StreamRange> candidates,
              std::vector<double>& out) {
  const std::size_t queries = head.local_lse.size();
  std::vector<double> all(queries, kNone);
  for (const StreamRange& block : candidates) {
    const std::vector<double> scores = scaled_scores(index, head, block);
    for (std::size_t i = 0; i < scores.size(); ++i) all[i % queries] = log_add_exp(all[i % queries], scores[i]);
  }
  for (std::size_t b = 0; b < candidates.size(); ++b) {
    const std::vector<double> scores = scaled_scores(index, head, candidates[b]);
    double best = 0.0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const std::size_t t = i % queries;
      best = std::max(best, std::exp(scores[i] - log_add_exp(double{head.local_lse[t]}, all[t])));
    }
    out[b] += best;
  }
}

}  // namespace

std::vector<double> score_blocks_reference(const KeyIndex& index, std::span<const HeadQueries> queries,
                                           std::span<const StreamRange> candidates, ScoreRule rule) {
  std::vector<double> out(candidates.size(), 0.0);
  for (const HeadQueries& head : queries) {
    MODELD_CHECK(head.queries.size() == head.local_lse.size() * static_cast<std::size_t>(index.key_dim()));
    if (head.local_lse.empty()) continue;
    if (rule == ScoreRule::sigmoid) {
      add_sigmoid(index, head, candidates, out);
    } else {
      add_full(index, head, candidates, out);
    }
  }
  return out;
}

}  // namespace modeld
