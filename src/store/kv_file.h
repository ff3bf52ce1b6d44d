// One KV payload as bytes of a file: a header that says all that must be known before a byte of it is used, then the
// payload as the engine wrote it.
//
// Layout, little-endian, 128 bytes: magic "modeldKV", version, packed format + 1 or 0, KV type, zero; key; identity;
// first place, places;
//   raw bytes, stored bytes; checksum (XXH3-128) of the stored bytes; zeros; checksum of the 112 bytes before it.
// Pure:   bytes in, values out. Whatever the bytes are, they are refused with a reason, or are what was written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.h"
#include "engine/engine.h"
#include "stream/manifest.h"

namespace modeld {

struct KvFileHeader {
  BlockKey key;
  /// Identity::digest() of what the KV was made under.
  Digest128 identity;
  PlaceRange places;
  KvType kv_type = KvType::f16;
  /// As in KvPayload.
  std::optional<KvType> packed;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
  Digest128 checksum;
  friend bool operator==(const KvFileHeader&, const KvFileHeader&) = default;
};

inline constexpr std::size_t kKvHeaderBytes = 128;
using KvHeaderBytes = std::array<std::byte, kKvHeaderBytes>;

/// The header of a payload that is stored as it is.
KvFileHeader header_of(const BlockKey& key, const Digest128& identity, const KvPayload& payload);

KvHeaderBytes encode(const KvFileHeader& header);

/// Errors: state_damaged for bytes that no version wrote, a version of the future, a file of another length.
Result<KvFileHeader> decode_kv_header(std::span<const std::byte> head, std::uint64_t file_bytes);

/// Whether a file is what is looked for. Errors: state_damaged for another key, payload_invalid for another identity.
Status check_expected(const KvFileHeader& header, const BlockKey& key, const Digest128& identity);

/// The payload. Errors: state_damaged when the body is not what the header's checksum was made of.
Result<KvPayload> decode_kv_body(const KvFileHeader& header, std::vector<std::byte> body);

}  // namespace modeld
