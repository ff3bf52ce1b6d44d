#include "recall/rivals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/check.h"

namespace modeld {
namespace {

/// Of keys in one KV head, rows × dim.
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
  std::vector<double> key;

  Mean(std::span<const float> keys, std::size_t dim) : key(dim, 0.0) {
    for (std::size_t i = 0; i < keys.size(); ++i) key[i % dim] += double{keys[i]};
    const std::size_t rows = keys.size() / dim;
    for (double& k : key) k /= static_cast<double>(rows);
  }

  [[nodiscard]] double product(std::span<const float> query) const {
    double sum = 0.0;
    for (std::size_t d = 0; d < query.size(); ++d) sum += double{query[d]} * key[d];
    return sum;
  }
};

double largest(std::span<const double> products) { return *std::max_element(products.begin(), products.end()); }

double mean(std::span<const double> products) {
  return std::accumulate(products.begin(), products.end(), 0.0) / static_cast<double>(products.size());
}

/// The head's share of a block's score: of its pages the best, each by `over` the products of all queries.
template <typename Summary>
double share(const HeadQueries& head, const std::vector<Summary>& pages, double (*over)(std::span<const double>)) {
  const std::size_t count = head.local_lse.size();
  const std::size_t dim = head.queries.size() / count;
  std::vector<double> products(count);
  double best = -std::numeric_limits<double>::infinity();
  for (const Summary& page : pages) {
    for (std::size_t t = 0; t < count; ++t) products[t] = page.product(std::span(head.queries).subspan(t * dim, dim));
    best = std::max(best, over(products));
  }
  return best / std::sqrt(static_cast<double>(dim));
}

template <typename Summary>
std::vector<double> score(const KeyIndex& index, std::span<const HeadQueries> queries,
                          std::span<const StreamRange> candidates, std::int64_t page,
                          double (*over)(std::span<const double>)) {
  MODELD_CHECK(page >= 1);
  const auto dim = static_cast<std::size_t>(index.key_dim());
  // Heads that share a KV head share its summaries.
  std::map<std::size_t, std::vector<const HeadQueries*>> by_kv_head;
  for (const HeadQueries& head : queries) {
    MODELD_CHECK(head.queries.size() == head.local_lse.size() * dim);
    if (!head.local_lse.empty()) by_kv_head[head.kv_head].push_back(&head);
  }
  std::vector<double> scores(candidates.size(), 0.0);
  for (const auto& [kv_head, heads] : by_kv_head) {
    for (std::size_t b = 0; b < candidates.size(); ++b) {
      MODELD_CHECK(!candidates[b].empty());
      std::vector<Summary> pages;
      for (StreamPos at = candidates[b].begin; at < candidates[b].end; at += std::min(page, candidates[b].end - at))
        pages.emplace_back(index.keys(kv_head, {at, at + std::min(page, candidates[b].end - at)}), dim);
      for (const HeadQueries* head : heads) scores[b] += share(*head, pages, over);
    }
  }
  return scores;
}

}  // namespace

std::vector<double> score_quest(const KeyIndex& index, std::span<const HeadQueries> queries,
                                std::span<const StreamRange> candidates, std::int64_t page) {
  return score<Bounds>(index, queries, candidates, page, largest);
}

std::vector<double> score_means(const KeyIndex& index, std::span<const HeadQueries> queries,
                                std::span<const StreamRange> candidates) {
  return score<Mean>(index, queries, candidates, std::numeric_limits<std::int64_t>::max(), mean);
}

}  // namespace modeld
