#include "recall/rivals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/check.h"

namespace modeld {
namespace {

/// Keys of one block in one KV head: rows × dim.
struct Bounds {
  std::vector<float> low;
  std::vector<float> high;

  Bounds(std::span<const float> keys, std::size_t dim)
      : low(dim, std::numeric_limits<float>::infinity()), high(dim, -std::numeric_limits<float>::infinity()) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      low[i % dim] = std::min(low[i % dim], keys[i]);
      high[i % dim] = std::max(high[i % dim], keys[i]);
    }
  }

  [[nodiscard]] double product(std::span<const float> query) const {
    double sum = 0.0;
    for (std::size_t d = 0; d < query.size(); ++d)
      sum += std::max(double{query[d]} * double{low[d]}, double{query[d]} * double{high[d]});
    return sum;
  }
};

struct Mean {
  std::vector<double> mean;

  Mean(std::span<const float> keys, std::size_t dim) : mean(dim, 0.0) {
    for (std::size_t i = 0; i < keys.size(); ++i) mean[i % dim] += double{keys[i]};
    for (double& m : mean) m /= static_cast<double>(keys.size() / dim);
  }

  [[nodiscard]] double product(std::span<const float> query) const {
    double sum = 0.0;
    for (std::size_t d = 0; d < query.size(); ++d) sum += double{query[d]} * mean[d];
    return sum;
  }
};

template <typename Summary>
std::vector<double> score(const KeyIndex& index, std::span<const HeadQueries> queries,
                          std::span<const StreamRange> candidates) {
  const auto dim = static_cast<std::size_t>(index.key_dim());
  // Heads that share a KV head share its summaries.
  std::map<std::size_t, std::vector<const HeadQueries*>> by_kv_head;
  for (const HeadQueries& head : queries) {
    MODELD_CHECK(head.queries.size() == head.local_lse.size() * dim);
    if (!head.local_lse.empty()) by_kv_head[head.kv_head].push_back(&head);
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
  std::vector<double> scores(candidates.size(), 0.0);
  for (const auto& [kv_head, heads] : by_kv_head) {
    for (std::size_t b = 0; b < candidates.size(); ++b) {
      MODELD_CHECK(!candidates[b].empty());
      const Summary summary(index.keys(kv_head, candidates[b]), dim);
      for (const HeadQueries* head : heads) {
        double best = -std::numeric_limits<double>::infinity();
        for (std::size_t t = 0; t < head->local_lse.size(); ++t)
          best = std::max(best, summary.product(std::span(head->queries).subspan(t * dim, dim)));
        scores[b] += best * scale;
      }
    }
  }
  return scores;
}

}  // namespace

std::vector<double> score_quest(const KeyIndex& index, std::span<const HeadQueries> queries,
                                std::span<const StreamRange> candidates) {
  return score<Bounds>(index, queries, candidates);
}

std::vector<double> score_means(const KeyIndex& index, std::span<const HeadQueries> queries,
                                std::span<const StreamRange> candidates) {
  return score<Mean>(index, queries, candidates);
}

}  // namespace modeld
