#include "needles/pairs.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "needles/names.h"

namespace modeld {
namespace {

// Names are drawn until one is new, so most must be.
static_assert(kNames > 4 * kPairsMax);

Needle json_member(const std::string& key, std::string value) {
  return {.sentence = fmt::format(R"("{}": "{}")", key, value),
          .question = fmt::format(R"(What is the value of the key "{}" in the JSON object?)", key),
          .answer = std::move(value),
          .answer_prefix = fmt::format(R"(The value of the key "{}" is)", key)};
}

Needle number_line(const std::string& key, std::string value) {
  return {.sentence = fmt::format("The magic number of {} is {}.", key, value),
          .question = fmt::format("What is the magic number of {}?", key),
          .answer = std::move(value),
          .answer_prefix = fmt::format("The magic number of {} is", key)};
}

}  // namespace

std::string_view value_name(PairStyle style) { return style == PairStyle::json ? "uuid" : "number"; }

std::vector<Needle> make_pairs(PairStyle style, std::size_t count, std::uint64_t seed) {
  MODELD_CHECK(count <= kPairsMax);
  SeededRandom random(seed);
  std::vector<Needle> pairs;
  pairs.reserve(count);
  Fresh fresh;
  const bool json = style == PairStyle::json;
  while (pairs.size() < count) {
    const std::string key = fresh.next([&] { return json ? some_uuid(random) : some_name(random); });
    pairs.push_back(json ? json_member(key, some_uuid(random)) : number_line(key, some_number(random)));
  }
  return pairs;
}

}  // namespace modeld
