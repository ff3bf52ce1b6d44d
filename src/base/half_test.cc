#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace modeld {
namespace {

TEST(Half, EveryValueComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f32_from_f16(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f32_from_f16(f16_from_f32(value))));
    } else {
      ASSERT_EQ(f16_from_f32(value), half) << bits;
    }
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(f32_from_f16(0x3c00), 1.0F);
  EXPECT_EQ(f32_from_f16(0xc000), -2.0F);
  EXPECT_EQ(f32_from_f16(0x7bff), 65504.0F);
  EXPECT_EQ(f32_from_f16(0x0001), std::ldexp(1.0F, -24));
  EXPECT_EQ(f32_from_f16(0x0400), std::ldexp(1.0F, -14));
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  // Halfway between every two neighbours, and a hair to both sides of it.
  for (std::uint16_t half = 0; half < 0x7bff; ++half) {
    const float low = f32_from_f16(half);
    const float high = f32_from_f16(static_cast<std::uint16_t>(half + 1));
    const float middle = low + (high - low) / 2;
    const auto even = static_cast<std::uint16_t>(half % 2 == 0 ? half : half + 1);
    ASSERT_EQ(f16_from_f32(middle), even) << half;
    ASSERT_EQ(f16_from_f32(std::nextafter(middle, low)), half) << half;
    ASSERT_EQ(f16_from_f32(std::nextafter(middle, high)), half + 1) << half;
  }
  EXPECT_EQ(f16_from_f32(65519.0F), 0x7bff);
  EXPECT_EQ(f16_from_f32(65520.0F), 0x7c00);
  EXPECT_EQ(f16_from_f32(std::numeric_limits<float>::infinity()), 0x7c00);
}

}  // namespace
}  // namespace modeld
