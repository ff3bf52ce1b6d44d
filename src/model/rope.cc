#include "model/rope.h"

#include <cmath>

#include "base/check.h"

namespace modeld {

std::vector<double> rope_frequencies(const Rope& rope) {
  if (rope.style == RopeStyle::none) return {};
  MODELD_CHECK(rope.dims >= 0 && rope.dims % 2 == 0);
  const auto pairs = static_cast<std::size_t>(rope.dims / 2);
  MODELD_CHECK(rope.freq_factors.empty() || rope.freq_factors.size() == pairs);
  std::vector<double> frequencies(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope.dims);
    const double factor = rope.freq_factors.empty() ? 1.0 : static_cast<double>(rope.freq_factors[i]);
    frequencies[i] = std::pow(rope.freq_base, exponent) * rope.freq_scale / factor;
  }
  return frequencies;
}

void rotate(std::span<float> vector, const Rope& rope, std::span<const double> frequencies, double position) {
  if (rope.style == RopeStyle::none) return;
  const std::size_t pairs = frequencies.size();
  MODELD_CHECK(pairs * 2 == static_cast<std::size_t>(rope.dims) && vector.size() >= pairs * 2);
  const bool neox = rope.style == RopeStyle::neox;
  for (std::size_t i = 0; i < pairs; ++i) {
    float& a = vector[neox ? i : 2 * i];
    float& b = vector[neox ? i + pairs : 2 * i + 1];
    const double angle = position * frequencies[i];
    const double cosine = std::cos(angle);
    const double sine = std::sin(angle);
    const auto x = static_cast<double>(a);
    const auto y = static_cast<double>(b);
    a = static_cast<float>(x * cosine - y * sine);
    b = static_cast<float>(x * sine + y * cosine);
  }
}

}  // namespace modeld
