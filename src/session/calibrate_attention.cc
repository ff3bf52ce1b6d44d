#include "session/calibrate_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace modeld {

void KeyTiles::append(std::span<const float> key) {
  MODELD_CHECK(key.size() == key_dim_);
  const std::size_t tile = tokens_ / kTile;
  const std::size_t lane = tokens_ % kTile;
  if (lane == 0) data_.resize((tile + 1) * key_dim_ * kTile, 0.0F);
  float* base = data_.data() + tile * key_dim_ * kTile + lane;
  for (std::size_t d = 0; d < key_dim_; ++d) base[d * kTile] = key[d];
  ++tokens_;
}

void KeyTiles::truncate(std::size_t tokens) {
  MODELD_CHECK(tokens <= tokens_);
  tokens_ = tokens;
  data_.resize((tokens + kTile - 1) / kTile * key_dim_ * kTile);
}

void KeyTiles::scores(std::span<const float> query, std::size_t begin, std::size_t end, std::span<float> out) const {
  MODELD_CHECK(query.size() == key_dim_ && begin <= end && end <= tokens_ && out.size() >= end - begin);
  const float scale = 1.0F / std::sqrt(static_cast<float>(key_dim_));
  for (std::size_t tile = begin / kTile; tile * kTile < end; ++tile) {
    float sums[kTile] = {};
    const float* base = data_.data() + tile * key_dim_ * kTile;
    for (std::size_t d = 0; d < key_dim_; ++d, base += kTile) {
      const float q = query[d];
      for (std::size_t lane = 0; lane < kTile; ++lane) sums[lane] += q * base[lane];
    }
    const std::size_t first = std::max(begin, tile * kTile);
    const std::size_t last = std::min(end, (tile + 1) * kTile);
    for (std::size_t j = first; j < last; ++j) out[j - begin] = sums[j - tile * kTile] * scale;
  }
}

double softmax_share(std::span<const float> scores, std::size_t begin, std::size_t end) {
  if (scores.empty()) return 0.0;
  const float top = *std::max_element(scores.begin(), scores.end());
  double all = 0.0;
  double part = 0.0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const auto weight = static_cast<double>(std::exp(scores[j] - top));
    all += weight;
    if (j >= begin && j < end) part += weight;
  }
  return part / all;
}

double log_sum_exp_of(std::span<const float> scores) {
  if (scores.empty()) return -std::numeric_limits<double>::infinity();
  const float top = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (const float s : scores) sum += static_cast<double>(std::exp(s - top));
  return static_cast<double>(top) + std::log(sum);
}

}  // namespace modeld
