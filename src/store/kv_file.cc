#include "store/kv_file.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace modeld {
namespace {

static_assert(std::endian::native == std::endian::little, "files are written in the machine's byte order");

constexpr std::uint64_t kMagic = 0x564b646c65646f6dULL;  // "modeldKV"
constexpr std::uint32_t kVersion = 1;

struct Raw {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint8_t packed = 0;
  std::uint8_t kv_type = 0;
  std::uint16_t zero = 0;
  std::uint64_t key_high = 0;
  std::uint64_t key_low = 0;
  std::uint64_t identity_high = 0;
  std::uint64_t identity_low = 0;
  std::int32_t first = 0;
  std::int32_t places = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t body_high = 0;
  std::uint64_t body_low = 0;
  std::uint64_t zeros[3] = {0, 0, 0};
  std::uint64_t head_high = 0;
  std::uint64_t head_low = 0;
};
static_assert(std::has_unique_object_representations_v<Raw> && sizeof(Raw) == kKvHeaderBytes);
constexpr std::size_t kChecked = offsetof(Raw, head_high);

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::state_damaged, fmt::format("A file of parked KV {}.", what));
}

}  // namespace

KvFileHeader header_of(const BlockKey& key, const Digest128& identity, const KvPayload& payload) {
  KvFileHeader header;
  header.key = key;
  header.identity = identity;
  header.places = payload.places;
  header.kv_type = payload.kv_type;
  header.packed = payload.packed;
  header.raw_bytes = payload.data.size();
  header.stored_bytes = payload.data.size();
  header.checksum = digest_of(payload.data);
  return header;
}

KvHeaderBytes encode(const KvFileHeader& header) {
  Raw raw;
  raw.packed = header.packed ? static_cast<std::uint8_t>(static_cast<int>(*header.packed) + 1) : 0;
  raw.kv_type = static_cast<std::uint8_t>(header.kv_type);
  raw.key_high = header.key.high;
  raw.key_low = header.key.low;
  raw.identity_high = header.identity.high;
  raw.identity_low = header.identity.low;
  raw.first = header.places.begin.get();
  raw.places = header.places.size();
  raw.raw_bytes = header.raw_bytes;
  raw.stored_bytes = header.stored_bytes;
  raw.body_high = header.checksum.high;
  raw.body_low = header.checksum.low;
  const Digest128 head = digest_of(std::as_bytes(std::span(&raw, 1)).first(kChecked));
  raw.head_high = head.high;
  raw.head_low = head.low;
  return std::bit_cast<KvHeaderBytes>(raw);
}

Result<KvFileHeader> decode_kv_header(std::span<const std::byte> head, std::uint64_t file_bytes) {
  if (head.size() < kKvHeaderBytes) return damaged("is too short for its header");
  Raw raw;
  std::memcpy(&raw, head.data(), kKvHeaderBytes);
  if (raw.magic != kMagic) return damaged("does not begin as one");
  const Digest128 checksum = digest_of(head.first(kChecked));
  if (checksum != Digest128{raw.head_high, raw.head_low}) return damaged("has a damaged header");
  if (raw.version != kVersion) {
    return fail(
        ErrorCode::state_damaged,
        fmt::format("A file of parked KV is of version {}; this modeld reads version {}.", raw.version, kVersion),
        {{"version", raw.version}});
  }
  // What follows passed the checksum: only a writer that was wrong itself, or meant harm, gets it past these.
  if (raw.packed > kKvTypes.size()) return damaged("is packed in a way that is not known");
  if (raw.kv_type >= kKvTypes.size()) return damaged("has a KV type that is not known");
  if (raw.places <= 0 || raw.first < 0 || raw.first > INT32_MAX - raw.places)
    return damaged("holds no possible places");
  if (raw.raw_bytes != raw.stored_bytes) return damaged("says two lengths of the same bytes");
  if (file_bytes < kKvHeaderBytes || file_bytes - kKvHeaderBytes != raw.stored_bytes)
    return damaged("has another length than its header says");
  KvFileHeader header;
  header.key = {raw.key_high, raw.key_low};
  header.identity = {raw.identity_high, raw.identity_low};
  header.places = {Place(raw.first), Place(raw.first + raw.places)};
  header.kv_type = static_cast<KvType>(raw.kv_type);
  if (raw.packed > 0) header.packed = static_cast<KvType>(raw.packed - 1);
  header.raw_bytes = raw.raw_bytes;
  header.stored_bytes = raw.stored_bytes;
  header.checksum = {raw.body_high, raw.body_low};
  return header;
}

Status check_expected(const KvFileHeader& header, const BlockKey& key, const Digest128& identity) {
  if (header.key != key) return damaged("holds another block than its name says");
  if (header.identity != identity) {
    return fail(ErrorCode::payload_invalid,
                "Parked KV was made under another model, engine, template or KV type; it is not used.");
  }
  return {};
}

Result<KvPayload> decode_kv_body(const KvFileHeader& header, std::vector<std::byte> body) {
  if (body.size() != header.stored_bytes) return damaged("has another length than its header says");
  if (digest_of(body) != header.checksum) return damaged("has changed since it was written");
  KvPayload payload;
  payload.places = header.places;
  payload.kv_type = header.kv_type;
  payload.packed = header.packed;
  payload.data = std::move(body);
  return payload;
}

}  // namespace modeld
