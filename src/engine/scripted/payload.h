// The bytes of a scripted KvPayload: a header that names what it is, then every token's K and V as stored.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/engine.h"

namespace modeld {

/// `model` stands for all that decides the KV's meaning: a payload of another model is refused.
KvPayload seal_payload(PlaceRange places, KvType type, std::optional<KvType> packed, std::uint64_t model,
                       std::span<const std::byte> rows);
/// The rows, as they are packed. `token_values`: numbers of one token. Errors: payload_invalid for anything but an
/// unharmed payload of this model and KV type.
Result<std::span<const std::byte>> open_payload(const KvPayload& payload, KvType type, std::uint64_t model,
                                                std::int64_t token_values);

}  // namespace modeld
