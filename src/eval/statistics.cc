#include "eval/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "needles/random.h"

namespace modeld {

Interval wilson(std::int64_t right, std::int64_t asked) {
  MODELD_CHECK(right >= 0 && right <= asked);
  if (asked == 0) return {0.0, 1.0};
  constexpr double kZ = 1.959963984540054;
  const auto n = static_cast<double>(asked);
  const double p = static_cast<double>(right) / n;
  const double centre = p + kZ * kZ / (2.0 * n);
  const double half = kZ * std::sqrt(p * (1.0 - p) / n + kZ * kZ / (4.0 * n * n));
  const double scale = 1.0 + kZ * kZ / n;
  return {std::max(0.0, (centre - half) / scale), std::min(1.0, (centre + half) / scale)};
}

Ratio paired_ratio(std::span<const bool> a, std::span<const bool> b, std::uint64_t seed, int rounds) {
  MODELD_CHECK(a.size() == b.size());
  const auto right_a = std::count(a.begin(), a.end(), true);
  const auto right_b = std::count(b.begin(), b.end(), true);
  if (right_b == 0) return {};
  Ratio ratio;
  ratio.value = static_cast<double>(right_a) / static_cast<double>(right_b);
  SeededRandom random(seed);
  std::vector<double> drawn;
  for (int round = 0; round < rounds; ++round) {
    int sum_a = 0;
    int sum_b = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::size_t q = random.below(a.size());
      sum_a += a[q] ? 1 : 0;
      sum_b += b[q] ? 1 : 0;
    }
    if (sum_b > 0) drawn.push_back(static_cast<double>(sum_a) / sum_b);
  }
  std::sort(drawn.begin(), drawn.end());
  const auto at = [&](double share) {
    return drawn[static_cast<std::size_t>(share * static_cast<double>(drawn.size() - 1))];
  };
  if (!drawn.empty()) ratio.interval = {at(0.025), at(0.975)};
  return ratio;
}

}  // namespace modeld
