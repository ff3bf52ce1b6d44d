#include "engine/scripted/payload.h"

#include <fmt/format.h>

#include <cstring>

#include "base/digest.h"

namespace modeld {
namespace {

struct Header {
  std::uint64_t magic = 0x31564b7470697263U;  // "cript" + "KV1"
  std::uint64_t model = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::uint64_t type = 0;
  std::uint64_t rows_bytes = 0;
  std::uint64_t check = 0;  // of all fields above and the rows
};

std::uint64_t check_of(const Header& h, std::span<const std::byte> rows) {
  Hasher hasher;
  hasher.number(h.magic).number(h.model).number(static_cast<std::uint32_t>(h.begin));
  hasher.number(static_cast<std::uint32_t>(h.end)).number(h.type).number(h.rows_bytes).bytes(rows);
  return hasher.finish().low;
}

/// Two formats in one number: 0 in the upper half for a payload that is not packed.
std::uint64_t type_mark(KvType type, std::optional<KvType> packed) {
  return static_cast<std::uint64_t>(type) + (packed ? (static_cast<std::uint64_t>(*packed) + 1) << 32U : 0);
}

}  // namespace

KvPayload seal_payload(PlaceRange places, KvType type, std::optional<KvType> packed, std::uint64_t model,
                       std::span<const std::byte> rows) {
  Header header;
  header.model = model;
  header.begin = places.begin.get();
  header.end = places.end.get();
  header.type = type_mark(type, packed);
  header.rows_bytes = rows.size();
  header.check = check_of(header, rows);
  KvPayload payload{places, type, packed, std::vector<std::byte>(sizeof header + rows.size())};
  std::memcpy(payload.data.data(), &header, sizeof header);
  std::memcpy(payload.data.data() + sizeof header, rows.data(), rows.size());
  return payload;
}

Result<std::span<const std::byte>> open_payload(const KvPayload& payload, KvType type, std::uint64_t model,
                                                std::int64_t token_values) {
  const auto invalid = [](const char* why) {
    return fail(ErrorCode::payload_invalid, fmt::format("The KV payload {}. Compute these tokens again.", why));
  };
  Header header;
  if (payload.data.size() < sizeof header) return invalid("is too short");
  std::memcpy(&header, payload.data.data(), sizeof header);
  const auto rows = std::span(payload.data).subspan(sizeof header);
  if (header.magic != Header{}.magic) return invalid("was not made by this engine");
  if (header.rows_bytes != rows.size()) return invalid("has the wrong length");
  if (header.check != check_of(header, rows)) return invalid("is damaged");
  if (header.model != model) return invalid("was made by another model");
  if (payload.kv_type != type || header.type != type_mark(type, payload.packed)) return invalid("has another KV type");
  if (header.begin != payload.places.begin.get() || header.end != payload.places.end.get()) {
    return invalid("names other places than it was made at");
  }
  if (payload.places.empty() ||
      std::cmp_not_equal(rows.size(), payload.places.size() * kv_bytes(payload.packed.value_or(type), token_values))) {
    return invalid("does not hold what its places say");
  }
  return rows;
}

}  // namespace modeld
