#include "recall/fuse.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace modeld {
namespace {

/// Each block's share from one list. Equal scores share the best rank among them, so that the order of the blocks in
/// the list never decides.
std::vector<double> shares(std::span<const double> scores, double k) {
  std::vector<double> sorted;
  sorted.reserve(scores.size());
  std::copy_if(scores.begin(), scores.end(), std::back_inserter(sorted), [](double s) { return s > 0.0; });
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::vector<double> out(scores.size(), 0.0);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!(scores[i] > 0.0)) continue;  // also drops what is not a number
    const auto better = std::lower_bound(sorted.begin(), sorted.end(), scores[i], std::greater<>()) - sorted.begin();
    out[i] = 1.0 / (k + 1.0 + static_cast<double>(better));
  }
  return out;
}

}  // namespace

std::vector<BlockScore> fuse_ranks(std::span<const ScoreList> lists, double k) {
  MODELD_CHECK(k >= 0.0);
  if (lists.empty()) return {};
  std::vector<BlockScore> fused(lists.front().size());
  for (std::size_t i = 0; i < fused.size(); ++i) fused[i].block = i;
  // The first list's score enters as its share: the same order, and no NaN among what is compared.
  const std::vector<double> first = shares(lists.front(), k);
  for (const ScoreList& list : lists) {
    MODELD_CHECK(list.size() == fused.size());
    const std::vector<double> from = shares(list, k);
    for (std::size_t i = 0; i < fused.size(); ++i) fused[i].score += from[i];
  }
  std::sort(fused.begin(), fused.end(), [&](const BlockScore& x, const BlockScore& y) {
    if (x.score != y.score) return x.score > y.score;
    if (first[x.block] != first[y.block]) return first[x.block] > first[y.block];
    return x.block < y.block;
  });
  return fused;
}

std::size_t blocks_to_read(std::span<const BlockScore> fused, std::span<const ScoreList> lists, std::size_t max) {
  std::size_t count = 1;
  for (const ScoreList& list : lists) {
    const auto first = std::max_element(list.begin(), list.end());
    if (first == list.end() || *first <= 0.0) continue;
    const auto rank =
        std::find_if(fused.begin(), fused.end(), [&](const BlockScore& block) { return list[block.block] == *first; });
    count = std::max(count, static_cast<std::size_t>(rank - fused.begin()) + 1);
  }
  return std::min({count, max, fused.size()});
}

}  // namespace modeld
