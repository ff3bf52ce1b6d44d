#include "model/kv_type.h"

#include "base/check.h"

namespace modeld {
namespace {

struct Format {
  KvType type;
  std::string_view name;
  std::int64_t values_per_group;
  std::int64_t bytes_per_group;
};

// ggml's block formats: a group of 32 has one f16 scale and 32 numbers of 8 or 4 bits.
constexpr std::array kFormats = {
    Format{KvType::f16, "f16", 1, 2},
    Format{KvType::q8_0, "q8_0", 32, 34},
    Format{KvType::q4_0, "q4_0", 32, 18},
};
static_assert(kFormats.size() == kKvTypes.size());

const Format& format_of(KvType type) { return kFormats.at(static_cast<std::size_t>(type)); }

}  // namespace

std::string_view to_text(KvType type) { return format_of(type).name; }

std::optional<KvType> kv_type_from(std::string_view name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return format.type;
  }
  return std::nullopt;
}

std::int64_t kv_bytes(KvType type, std::int64_t values) {
  const Format& format = format_of(type);
  MODELD_CHECK(values >= 0 && values % format.values_per_group == 0);
  return values / format.values_per_group * format.bytes_per_group;
}

}  // namespace modeld
