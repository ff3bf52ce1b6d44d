// Rows of numbers in the KV formats: IEEE half, and blocks of 32 with one half-precision scale (q8_0, q4_0: the layout
// that ggml's block_q8_0 and block_q4_0 have).
#pragma once

#include <cstddef>
#include <span>

#include "model/kv_type.h"

namespace modeld {

/// REQUIRES out.size() == kv_bytes(type, row.size()); whole blocks for the quantised types.
void encode_row(KvType type, std::span<const float> row, std::span<std::byte> out);
/// The numbers that the bytes stand for.
void decode_row(KvType type, std::span<const std::byte> in, std::span<float> row);

/// From one format into another. REQUIRES both to be of the same number of values, a multiple of 32.
void convert_rows(KvType from, std::span<const std::byte> in, KvType to, std::span<std::byte> out);

}  // namespace modeld
