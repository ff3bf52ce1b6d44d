// Rotary position embedding on single vectors, as the engines do it (RoFormer, arXiv 2104.09864; YaRN is not covered).
#pragma once

#include <span>
#include <vector>

#include "model/geometry.h"

namespace modeld {

/// Angles for one position step: dims/2 entries, pair i turns by position · freq_base^(-2i/dims) · freq_scale /
/// factor_i.
std::vector<double> rope_frequencies(const Rope& rope);

/// Rotates `vector` (one head, at least rope.dims long) by `position` steps, in place; a negative number turns back.
/// `frequencies` comes from rope_frequencies(rope). A rope of style none leaves it as it is.
void rotate(std::span<float> vector, const Rope& rope, std::span<const double> frequencies, double position);

}  // namespace modeld
