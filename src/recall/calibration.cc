#include "recall/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/digest.h"

namespace modeld {
namespace {

constexpr double kWeakest = 0.02;
constexpr double kShareOfStrongest = 1.0 / 8.0;

void strongest_first(std::vector<HeadMass>& heads) {
  std::erase_if(heads, [](const HeadMass& h) { return !std::isfinite(h.mass); });
  std::sort(heads.begin(), heads.end(),
            [](const HeadMass& a, const HeadMass& b) { return a.mass != b.mass ? a.mass > b.mass : a.head < b.head; });
}

std::int32_t key_dim(const ModelGeometry& geometry, HeadRef head) {
  MODELD_CHECK(head.layer >= 0 && head.layer < std::ssize(geometry.layers));
  const LayerGeometry& layer = geometry.layers[static_cast<std::size_t>(head.layer)];
  MODELD_CHECK(head.head >= 0 && head.head < layer.heads);
  return layer.key_dim;
}

}  // namespace

Result<std::vector<HeadMass>> choose_heads(const ModelGeometry& geometry, std::vector<HeadMass> all, double index_share,
                                           std::size_t max_heads) {
  strongest_first(all);
  const double strongest = all.empty() ? 0.0 : all.front().mass;
  if (strongest < kWeakest) {
    return fail(
        ErrorCode::calibration_failed,
        fmt::format(
            "No attention head of {} looks for the answer: the strongest of {} puts {:.4f} of its attention on it, {} "
            "is the least. Use a model that was trained to answer from a text.",
            geometry.name.empty() ? "this model" : geometry.name, all.size(), strongest, kWeakest),
        {{"heads", std::ssize(all)}});
  }
  const std::int32_t width = key_dim(geometry, all.front().head);
  const std::int64_t kv_bytes = geometry.kv_bytes_per_token(KvType::f16);
  const auto budget = static_cast<std::int64_t>(index_share * static_cast<double>(kv_bytes));
  std::vector<HeadMass> chosen;
  std::set<KvHeadRef> indexed;
  for (const HeadMass& h : all) {
    if (chosen.size() == max_heads || h.mass < kWeakest || h.mass < strongest * kShareOfStrongest) break;
    if (key_dim(geometry, h.head) != width) continue;
    const KvHeadRef kv_head = kv_head_of(geometry, h.head);
    const auto with = static_cast<std::int64_t>(indexed.size()) + (indexed.contains(kv_head) ? 0 : 1);
    if (with * (width + std::int64_t{2}) > budget) continue;
    indexed.insert(kv_head);
    chosen.push_back(h);
  }
  if (chosen.empty()) {
    return fail(
        ErrorCode::calibration_failed,
        fmt::format(
            "An index of one KV head takes {} bytes a token, more than {} bytes, its share of this model's {} bytes of "
            "KV a token. Raise the index's share, or use a model with more heads.",
            width + 2, budget, kv_bytes),
        {{"index_bytes", width + 2}, {"budget_bytes", budget}, {"kv_bytes", kv_bytes}});
  }
  return chosen;
}

std::vector<KvHeadRef> index_heads(const ModelGeometry& geometry, std::span<const HeadMass> heads) {
  std::set<KvHeadRef> kv_heads;
  for (const HeadMass& h : heads) kv_heads.insert(kv_head_of(geometry, h.head));
  return {kv_heads.begin(), kv_heads.end()};
}

std::string Calibration::digest() const {
  Hasher hasher;
  hasher.text("modeld calibration").number(kVersion).text(model).text(engine).number(heads.size());
  for (const HeadMass& h : heads) {
    hasher.number(static_cast<std::uint64_t>(h.head.layer)).number(static_cast<std::uint64_t>(h.head.head));
  }
  hasher.number(static_cast<std::uint64_t>(distance)).number(static_cast<std::uint64_t>(rule));
  return hasher.finish().hex();
}

}  // namespace modeld
