// The number formats a KV cache can have, with their exact sizes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace modeld {

enum class KvType : std::uint8_t { f16, q8_0, q4_0 };
inline constexpr std::array kKvTypes = {KvType::f16, KvType::q8_0, KvType::q4_0};

std::string_view to_text(KvType type);
std::optional<KvType> kv_type_from(std::string_view name);

/// Bytes of `values` consecutive numbers. f16: 2 each; q8_0: 34 per 32; q4_0: 18 per 32 (ggml block formats).
/// REQUIRES values to be a multiple of 32 for the quantised types.
std::int64_t kv_bytes(KvType type, std::int64_t values);

}  // namespace modeld
