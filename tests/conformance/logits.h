// Comparing what a model says next.
#pragma once

#include <span>
#include <vector>

#include "stream/tokens.h"

namespace modeld {

/// Logits copied out of an engine.
using Logits = std::vector<float>;

/// KL(p ‖ q) of the two softmax distributions, in nats. Infinite for logits of different lengths or that are not
/// finite.
double divergence(std::span<const float> p, std::span<const float> q);
Token best(std::span<const float> logits);
/// |a − b| ÷ |a|, Euclidean; infinite for different lengths.
double relative_error(std::span<const float> a, std::span<const float> b);

}  // namespace modeld
