#include "model/kv_rows.h"

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

RC_GTEST_PROP(KvRows, ErrorsStayWithinTheStepOfTheFormat, ()) {
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

TEST(KvRows, ConvertedPieceByPieceTheyAreAsEncodedAtOnce) {
  std::vector<float> row(32 * 77);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i)) * static_cast<float>(i % 50);
  const auto encoded = [&](KvType type, const std::vector<float>& values) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(kv_bytes(type, static_cast<std::int64_t>(values.size()))));
    encode_row(type, values, bytes);
    return bytes;
  };
  const std::vector<std::byte> half = encoded(KvType::f16, row);
  const std::vector<float> rounded = round_trip(KvType::f16, row);
  for (const KvType type : kKvTypes) {
    const std::vector<std::byte> expected = encoded(type, rounded);
    std::vector<std::byte> converted(expected.size());
    convert_rows(KvType::f16, half, type, converted);
    EXPECT_EQ(converted, expected) << to_text(type);
  }
}

}  // namespace
}  // namespace modeld
