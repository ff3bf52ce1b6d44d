// Intervals for scores: how sure a share of right answers is, the ratio of two shares, and a mean.
#pragma once

#include <cstdint>
#include <span>

namespace modeld {

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

/// Wilson's 95 % interval of a share (Wilson 1927). A question may be right in part; that makes the interval wider than
/// it need be. `asked` = 0 gives [0, 1].
Interval wilson(double right, std::int64_t asked);

struct Ratio {
  double value = 0.0;
  Interval interval;
};

/// (right of `a`) / (right of `b`) over the same questions, each 0 … 1, with the 95 % interval of the paired bootstrap:
/// questions are drawn with replacement, both answers together; rounds in which `b` has none right are left out.
/// Seeded. `b` without any right answer gives 0 and [0, 0]. REQUIRES equal sizes.
Ratio paired_ratio(std::span<const double> a, std::span<const double> b, std::uint64_t seed, int rounds = 4000);

/// The 95 % interval of the mean of `values` by the bootstrap: values are drawn with replacement. Seeded. What depends
/// on its neighbours (the tokens of a text) is to be drawn together: give the means of stretches. [0, 0] for none.
Interval mean_interval(std::span<const double> values, std::uint64_t seed, int rounds = 4000);

}  // namespace modeld
