#include "session/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace modeld {

Token Sampler::sample(std::span<const float> logits) {
  MODELD_CHECK(!logits.empty());
  if (sampling_.temperature <= 0.0F) {
    return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  candidates_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) candidates_[i] = {logits[i], static_cast<Token>(i)};
  const auto better = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  const std::size_t keep = sampling_.top_k > 0 ? std::min(candidates_.size(), static_cast<std::size_t>(sampling_.top_k))
                                               : candidates_.size();
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(keep), candidates_.end(),
                    better);
  candidates_.resize(keep);
  const float top = candidates_.front().first;
  double sum = 0.0;
  for (auto& [value, token] : candidates_) {
    value = std::exp((value - top) / sampling_.temperature);
    sum += static_cast<double>(value);
  }
  double kept = 0.0;
  std::size_t count = 0;
  while (count < candidates_.size() && (count == 0 || kept < static_cast<double>(sampling_.top_p) * sum)) {
    kept += static_cast<double>(candidates_[count++].first);
  }
  double draw = std::uniform_real_distribution<double>(0.0, kept)(random_);
  for (std::size_t i = 0; i < count; ++i) {
    draw -= static_cast<double>(candidates_[i].first);
    if (draw <= 0.0) return candidates_[i].second;
  }
  return candidates_[count - 1].second;
}

std::size_t whole_utf8(std::string_view text) {
  const std::size_t size = text.size();
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, size); ++back) {
    const auto byte = static_cast<unsigned char>(text[size - back]);
    if ((byte & 0xC0U) == 0x80U) continue;  // a continuation byte: its lead is further back
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    return length > back ? size - back : size;
  }
  return size;
}

}  // namespace modeld
