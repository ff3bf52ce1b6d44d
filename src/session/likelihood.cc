#include "session/likelihood.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace modeld {

double negative_log_likelihood(std::span<const float> logits, Token token) {
  MODELD_CHECK(token >= 0 && static_cast<std::size_t>(token) < logits.size());
  // Without the largest logit taken off, exp() overflows.
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return std::log(sum) + (top - static_cast<double>(logits[static_cast<std::size_t>(token)]));
}

}  // namespace modeld
