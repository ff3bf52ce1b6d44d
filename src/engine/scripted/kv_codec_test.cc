#include "engine/scripted/kv_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

namespace modeld {
namespace {

std::vector<float> round_trip(KvType type, const std::vector<float>& row) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(kv_bytes(type, static_cast<std::int64_t>(row.size()))));
  encode_row(type, row, bytes);
  std::vector<float> out(row.size());
  decode_row(type, bytes, out);
  return out;
}

TEST(KvCodec, EveryHalfNumberIsItself) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (std::isnan(half_to_float(half))) continue;
    ASSERT_EQ(half_from(half_to_float(half)), half);
  }
}

TEST(KvCodec, HalvesRoundToNearestEven) {
  EXPECT_EQ(half_to_float(half_from(1.0F + 0x1p-11F)), 1.0F);
  EXPECT_EQ(half_to_float(half_from(1.0F + 0x1.8p-10F)), 1.0F + 0x1p-9F);
  EXPECT_EQ(half_to_float(half_from(65504.0F)), 65504.0F);
  EXPECT_TRUE(std::isinf(half_to_float(half_from(65520.0F))));
  EXPECT_EQ(half_to_float(half_from(0x1p-24F)), 0x1p-24F);
  EXPECT_EQ(half_to_float(half_from(0x1p-25F)), 0.0F);
  EXPECT_TRUE(std::isnan(half_to_float(half_from(std::nanf("")))));
}

RC_GTEST_PROP(KvCodec, ErrorsStayWithinTheStepOfTheFormat, ()) {
  const auto numbers = *rc::gen::container<std::vector<int>>(64, rc::gen::inRange(-1000, 1001));
  std::vector<float> row(numbers.begin(), numbers.end());
  for (const KvType type : kKvTypes) {
    const auto out = round_trip(type, row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      float top = 0.0F;
      for (std::size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) top = std::max(top, std::fabs(row[j]));
      // q4_0 reaches only 7/8 of the largest size on the side opposite to its sign: one whole step there.
      const float step = type == KvType::f16    ? std::fabs(row[i]) / 2048.0F
                         : type == KvType::q8_0 ? top / 127.0F * 0.5F + top / 1024.0F
                                                : top / 8.0F * 1.01F;
      RC_ASSERT(std::fabs(out[i] - row[i]) <= step + 1e-6F);
    }
  }
}

}  // namespace
}  // namespace modeld
