#include "recall/fuse.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

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

/// The list's first choice; nothing if it knows nothing. Of equals the first in the text.
std::optional<std::size_t> first_of(const ScoreList& list) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] > 0.0 && (!first || list[i] > list[*first])) first = i;
  return first;
}

constexpr std::size_t kHeads = 0;
constexpr std::size_t kMeaning = 2;

/// Of what a question's words weigh, how much one block holds where it is they that lead to the answer.
constexpr double kCoveredShare = 0.25;

/// Whether the list's first choice stands out: the next one has at most half of its score.
bool stands_out(const ScoreList& list) {
  const auto first = first_of(list);
  if (!first) return false;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (i != *first && list[i] > 0.5 * list[*first]) return false;
  return true;
}

/// Whether the lists agree on a first choice, and not by chance: all of them; or two, where the words are most of what
/// was asked or the heads are sure. Two of three choose the same of a thousand blocks by chance now and then, since a
/// block that shares a common word with a question draws heads, too.
bool agree(std::span<const ScoreList> lists, double covered) {
  std::vector<std::size_t> firsts;
  for (const ScoreList& list : lists)
    if (const auto first = first_of(list)) firsts.push_back(*first);
  std::sort(firsts.begin(), firsts.end());
  const auto different = static_cast<std::size_t>(std::unique(firsts.begin(), firsts.end()) - firsts.begin());
  if (different == firsts.size()) return false;
  return different == 1 || covered >= kCoveredShare || stands_out(lists[kHeads]);
}

double weight_of(std::size_t list, std::span<const ScoreList> lists, bool agreed) {
  if (agreed || lists.size() <= kMeaning) return 1.0;
  return list == kMeaning ? 1.0 : list == kHeads ? 0.2 : 0.0;
}

}  // namespace

std::vector<BlockScore> fuse_ranks(std::span<const ScoreList> lists, double covered, double k) {
  MODELD_CHECK(k >= 0.0);
  if (lists.empty()) return {};
  std::vector<BlockScore> fused(lists.front().size());
  for (std::size_t i = 0; i < fused.size(); ++i) fused[i].block = i;
  // The first list's score enters as its share: the same order, and no NaN among what is compared.
  const std::vector<double> first = shares(lists.front(), k);
  const bool agreed = agree(lists, covered);
  for (std::size_t l = 0; l < lists.size(); ++l) {
    MODELD_CHECK(lists[l].size() == fused.size());
    const double weight = weight_of(l, lists, agreed);
    const std::vector<double> from = shares(lists[l], k);
    for (std::size_t i = 0; i < fused.size(); ++i) fused[i].score += weight * from[i];
  }
  std::sort(fused.begin(), fused.end(), [&](const BlockScore& x, const BlockScore& y) {
    if (x.score != y.score) return x.score > y.score;
    if (first[x.block] != first[y.block]) return first[x.block] > first[y.block];
    return x.block < y.block;
  });
  return fused;
}

std::vector<std::size_t> best_blocks(const ScoreList& scores, std::size_t count) {
  std::vector<std::size_t> order;
  for (std::size_t b = 0; b < scores.size(); ++b)
    if (scores[b] > 0.0 || scores[b] < 0.0) order.push_back(b);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(order.size(), count));
  return order;
}

std::size_t blocks_alike(std::span<const BlockScore> fused, std::span<const ScoreList> lists, double share) {
  std::size_t alike = fused.size();
  for (const ScoreList& list : lists) {
    const auto best = std::max_element(list.begin(), list.end());
    if (best == list.end() || *best <= 0.0) continue;
    const auto worse = std::find_if(fused.begin(), fused.end(), [&](const BlockScore& block) {
      return !(list[block.block] >= share * *best);  // also what is not a number
    });
    alike = std::min(alike, static_cast<std::size_t>(worse - fused.begin()));
  }
  return alike;
}

std::vector<std::size_t> blocks_to_read(std::span<const BlockScore> fused, std::span<const ScoreList> lists,
                                        std::size_t max) {
  max = std::min(max, fused.size());
  if (max == 0) return {};
  std::vector<std::size_t> firsts;
  for (const ScoreList& list : lists)
    if (const auto first = first_of(list)) firsts.push_back(*first);
  const auto among = [](std::span<const std::size_t> blocks, std::size_t block) {
    return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
  };
  const std::size_t alike = std::min(max, blocks_alike(fused, lists));
  std::size_t count = std::max<std::size_t>(1, alike);
  for (std::size_t i = count; i < fused.size(); ++i)
    if (among(firsts, fused[i].block)) count = std::min(max, i + 1);
  std::vector<std::size_t> blocks;
  blocks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) blocks.push_back(fused[i].block);
  std::sort(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(alike), std::greater<>());
  // First choices beyond `max` take the last places; neither the best of all nor another first choice gives way.
  std::size_t place = count;
  for (const std::size_t first : firsts) {
    if (among(blocks, first)) continue;
    while (place > 1 && among(firsts, blocks[place - 1])) --place;
    if (place > 1) blocks[--place] = first;
  }
  return blocks;
}

}  // namespace modeld
