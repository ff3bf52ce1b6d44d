#include "eval/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "needles/random.h"

namespace modeld {
namespace {

/// The middle 95 % of what was drawn.
Interval middle(std::vector<double> drawn) {
  if (drawn.empty()) return {};
  std::sort(drawn.begin(), drawn.end());
  const auto at = [&](double share) {
    return drawn[static_cast<std::size_t>(share * static_cast<double>(drawn.size() - 1))];
  };
  return {at(0.025), at(0.975)};
}

}  // namespace

Interval wilson(double right, std::int64_t asked) {
  MODELD_CHECK(right >= 0.0 && right <= static_cast<double>(asked));
  if (asked == 0) return {0.0, 1.0};
  constexpr double kZ = 1.959963984540054;
  const auto n = static_cast<double>(asked);
  const double p = right / n;
  const double centre = p + kZ * kZ / (2.0 * n);
  const double half = kZ * std::sqrt(p * (1.0 - p) / n + kZ * kZ / (4.0 * n * n));
  const double scale = 1.0 + kZ * kZ / n;
  return {std::max(0.0, (centre - half) / scale), std::min(1.0, (centre + half) / scale)};
}

Ratio paired_ratio(std::span<const double> a, std::span<const double> b, std::uint64_t seed, int rounds) {
  MODELD_CHECK(a.size() == b.size());
  const double right_a = std::accumulate(a.begin(), a.end(), 0.0);
  const double right_b = std::accumulate(b.begin(), b.end(), 0.0);
  if (right_b <= 0.0) return {};
  Ratio ratio;
  ratio.value = right_a / right_b;
  SeededRandom random(seed);
  std::vector<double> drawn;
  for (int round = 0; round < rounds; ++round) {
    double sum_a = 0.0;
    double sum_b = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::size_t q = random.below(a.size());
      sum_a += a[q];
      sum_b += b[q];
    }
    if (sum_b > 0.0) drawn.push_back(sum_a / sum_b);
  }
  ratio.interval = middle(std::move(drawn));
  return ratio;
}

Interval mean_interval(std::span<const double> values, std::uint64_t seed, int rounds) {
  if (values.empty()) return {};
  SeededRandom random(seed);
  std::vector<double> drawn;
  for (int round = 0; round < rounds; ++round) {
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[random.below(values.size())];
    drawn.push_back(sum / static_cast<double>(values.size()));
  }
  return middle(std::move(drawn));
}

}  // namespace modeld
