#include "eval/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <memory>

namespace modeld {
namespace {

TEST(Wilson, MatchesPublishedValues) {
  // 8 of 10 and 0 of 20: values from the closed formula, computed by hand to four places.
  EXPECT_NEAR(wilson(8, 10).low, 0.4902, 1e-4);
  EXPECT_NEAR(wilson(8, 10).high, 0.9433, 1e-4);
  EXPECT_NEAR(wilson(0, 20).low, 0.0, 1e-9);
  EXPECT_NEAR(wilson(0, 20).high, 0.1611, 1e-4);
}

RC_GTEST_PROP(Wilson, HoldsTheShareAndNarrowsWithMoreQuestions, ()) {
  const auto asked = *rc::gen::inRange<std::int64_t>(1, 500);
  const auto right = *rc::gen::inRange<std::int64_t>(0, asked + 1);
  const Interval one = wilson(static_cast<double>(right), asked);
  const Interval ten = wilson(static_cast<double>(right) * 10.0, asked * 10);
  const double share = static_cast<double>(right) / static_cast<double>(asked);
  RC_ASSERT(one.low <= share + 1e-12 && share <= one.high + 1e-12);
  RC_ASSERT(ten.high - ten.low < one.high - one.low);
}

TEST(PairedRatio, IsOneWithoutWidthWhenBothAnswerAlike) {
  std::array<double, 40> a{};
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = i % 3 != 0 ? 1.0 : 0.25;
  const Ratio ratio = paired_ratio(a, a, 1);
  EXPECT_DOUBLE_EQ(ratio.value, 1.0);
  EXPECT_DOUBLE_EQ(ratio.interval.low, 1.0);
  EXPECT_DOUBLE_EQ(ratio.interval.high, 1.0);
}

TEST(PairedRatio, HoldsTheValueInItsIntervalAndIsSeeded) {
  std::array<double, 50> a{};
  std::array<double, 50> b{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = i % 5 != 0 ? 1.0 : 0.0;
    b[i] = i % 10 != 1 ? 1.0 : 0.0;
  }
  const Ratio ratio = paired_ratio(a, b, 7);
  EXPECT_NEAR(ratio.value, 40.0 / 45.0, 1e-12);
  EXPECT_LT(ratio.interval.low, ratio.value);
  EXPECT_GT(ratio.interval.high, ratio.value);
  EXPECT_DOUBLE_EQ(paired_ratio(a, b, 7).interval.low, ratio.interval.low);
}

TEST(PairedRatio, IsZeroWithoutAnyRightAnswerToCompareWith) {
  const std::array a = {1.0, 1.0, 0.0};
  const std::array b = {0.0, 0.0, 0.0};
  EXPECT_EQ(paired_ratio(a, b, 1).value, 0.0);
}

TEST(MeanInterval, HoldsTheMeanAndIsAboutFourStandardErrorsWide) {
  std::array<double, 100> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 3.0 : 5.0;
  const Interval interval = mean_interval(values, 1);
  EXPECT_LT(interval.low, 4.0);
  EXPECT_GT(interval.high, 4.0);
  EXPECT_NEAR(interval.high - interval.low, 2.0 * 1.96 * 0.1, 0.04);  // the values' deviation is 1, of 100 of them
  EXPECT_DOUBLE_EQ(mean_interval(values, 1).low, interval.low);
  EXPECT_EQ(mean_interval({}, 1).high, 0.0);
}

}  // namespace
}  // namespace modeld
