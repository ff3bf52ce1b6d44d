#include "engine/scripted/kv_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace modeld {
namespace {

constexpr std::size_t kBlock = 32;

void put_half(std::byte* out, float value) {
  const std::uint16_t bits = half_from(value);
  std::memcpy(out, &bits, sizeof bits);
}

float get_half(const std::byte* in) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, in, sizeof bits);
  return half_to_float(bits);
}

void encode_q8(std::span<const float> block, std::byte* out) {
  float top = 0.0F;
  for (const float x : block) top = std::max(top, std::fabs(x));
  put_half(out, top / 127.0F);
  const float inverse = top > 0.0F ? 127.0F / top : 0.0F;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const auto q = static_cast<std::int8_t>(std::lround(block[i] * inverse));
    out[2 + i] = std::bit_cast<std::byte>(q);
  }
}

// The value of largest size keeps its sign and becomes −8, as in ggml; low nibbles are the first half of the block.
void encode_q4(std::span<const float> block, std::byte* out) {
  float top = 0.0F;
  for (const float x : block) {
    if (std::fabs(x) > std::fabs(top)) top = x;
  }
  const float scale = top / -8.0F;
  put_half(out, scale);
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  const auto nibble = [inverse](float x) {
    return static_cast<unsigned>(std::clamp(static_cast<int>(x * inverse + 8.5F), 0, 15));
  };
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    out[2 + i] = static_cast<std::byte>(nibble(block[i]) | (nibble(block[i + kBlock / 2]) << 4U));
  }
}

}  // namespace

std::uint16_t half_from(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t rest = bits & 0x7fffffffU;
  if (rest > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (rest >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  std::uint32_t mantissa = 0;
  std::uint32_t shift = 13;
  std::uint32_t base = 0;
  if (rest >= 0x38800000U) {
    mantissa = rest - 0x38000000U;
  } else {
    const std::uint32_t exponent = rest >> 23U;
    if (exponent < 102) return static_cast<std::uint16_t>(sign);
    mantissa = (rest & 0x7fffffU) | 0x800000U;
    shift = 126 - exponent;
  }
  base = mantissa >> shift;
  const std::uint32_t left = mantissa & ((1U << shift) - 1U);
  const std::uint32_t half = 1U << (shift - 1U);
  if (left > half || (left == half && (base & 1U) != 0U)) ++base;
  return static_cast<std::uint16_t>(sign | base);
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13U));
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
}

void encode_row(KvType type, std::span<const float> row, std::span<std::byte> out) {
  MODELD_CHECK(out.size() == static_cast<std::size_t>(kv_bytes(type, static_cast<std::int64_t>(row.size()))));
  if (type == KvType::f16) {
    for (std::size_t i = 0; i < row.size(); ++i) put_half(out.data() + 2 * i, row[i]);
    return;
  }
  const std::size_t block_bytes = out.size() / (row.size() / kBlock);
  for (std::size_t b = 0; b < row.size() / kBlock; ++b) {
    const auto block = row.subspan(b * kBlock, kBlock);
    std::byte* to = out.data() + b * block_bytes;
    if (type == KvType::q8_0) {
      encode_q8(block, to);
    } else {
      encode_q4(block, to);
    }
  }
}

void decode_row(KvType type, std::span<const std::byte> in, std::span<float> row) {
  MODELD_CHECK(in.size() == static_cast<std::size_t>(kv_bytes(type, static_cast<std::int64_t>(row.size()))));
  if (type == KvType::f16) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = get_half(in.data() + 2 * i);
    return;
  }
  const std::size_t block_bytes = in.size() / (row.size() / kBlock);
  for (std::size_t b = 0; b < row.size() / kBlock; ++b) {
    const std::byte* from = in.data() + b * block_bytes;
    const float scale = get_half(from);
    float* to = row.data() + b * kBlock;
    for (std::size_t i = 0; i < kBlock; ++i) {
      if (type == KvType::q8_0) {
        to[i] = scale * static_cast<float>(std::bit_cast<std::int8_t>(from[2 + i]));
      } else {
        const auto pair = std::to_integer<unsigned>(from[2 + i % (kBlock / 2)]);
        const unsigned nibble = i < kBlock / 2 ? pair & 15U : pair >> 4U;
        to[i] = scale * static_cast<float>(static_cast<int>(nibble) - 8);
      }
    }
  }
}

}  // namespace modeld
