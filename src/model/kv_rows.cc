#include "model/kv_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace modeld {
namespace {

constexpr std::size_t kBlock = 32;

void put_half(std::byte* out, float value) {
  const std::uint16_t bits = f16_from_f32(value);
  std::memcpy(out, &bits, sizeof bits);
}

float get_half(const std::byte* in) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, in, sizeof bits);
  return f32_from_f16(bits);
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

void convert_rows(KvType from, std::span<const std::byte> in, KvType to, std::span<std::byte> out) {
  // In pieces that stay in the nearest cache.
  constexpr std::size_t kPiece = 1024;
  std::array<float, kPiece> values{};
  const auto bytes = [](KvType type, std::size_t count) {
    return static_cast<std::size_t>(kv_bytes(type, static_cast<std::int64_t>(count)));
  };
  const std::size_t count = in.size() / bytes(from, kBlock) * kBlock;
  MODELD_CHECK(in.size() == bytes(from, count) && out.size() == bytes(to, count));
  for (std::size_t at = 0; at < count; at += kPiece) {
    const std::size_t size = std::min(kPiece, count - at);
    const auto piece = std::span(values).first(size);
    decode_row(from, in.subspan(bytes(from, at), bytes(from, size)), piece);
    encode_row(to, piece, out.subspan(bytes(to, at), bytes(to, size)));
  }
}

}  // namespace modeld
