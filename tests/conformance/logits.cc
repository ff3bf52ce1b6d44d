#include "conformance/logits.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace modeld {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double log_sum(std::span<const float> logits) {
  const double top = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(x - top);
  return top + std::log(sum);
}

}  // namespace

double divergence(std::span<const float> p, std::span<const float> q) {
  if (p.empty() || p.size() != q.size()) return kInfinity;
  const auto finite = [](float x) { return std::isfinite(x); };
  if (!std::ranges::all_of(p, finite) || !std::ranges::all_of(q, finite)) return kInfinity;
  const double p_sum = log_sum(p);
  const double q_sum = log_sum(q);
  double kl = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_sum;
    kl += std::exp(log_p) * (log_p - (q[i] - q_sum));
  }
  return kl;
}

Token best(std::span<const float> logits) {
  return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

double relative_error(std::span<const float> a, std::span<const float> b) {
  if (a.empty() || a.size() != b.size()) return kInfinity;
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    size += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  }
  return size > 0.0 ? std::sqrt(difference / size) : kInfinity;
}

}  // namespace modeld
