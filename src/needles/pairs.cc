#include "needles/pairs.h"

#include <fmt/format.h>

#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "needles/filler_words.h"
#include "needles/random.h"

namespace modeld {
namespace {

// Names are drawn until one is new, so most must be.
static_assert(std::size(filler::kAdjectives) * std::size(filler::kPeople) * std::size(filler::kThings) > 4 * kPairsMax);

std::string uuid(SeededRandom& random) {
  std::string text = "00000000-0000-0000-0000-000000000000";
  for (char& digit : text)
    if (digit != '-') digit = "0123456789abcdef"[random.below(16)];
  return text;
}

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
  std::set<std::string> keys;
  while (pairs.size() < count) {
    const bool json = style == PairStyle::json;
    const std::string_view adjective = random.pick(filler::kAdjectives);
    const std::string_view person = random.pick(filler::kPeople);
    const std::string key =
        json ? uuid(random) : fmt::format("{}-{}-{}", adjective, person, random.pick(filler::kThings));
    if (!keys.insert(key).second) continue;
    pairs.push_back(json ? json_member(key, uuid(random))
                         : number_line(key, fmt::format("{}", 1'000'000 + random.below(9'000'000))));
  }
  return pairs;
}

}  // namespace modeld
