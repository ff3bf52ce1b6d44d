// Keys with values that differ in nothing but their names: texts of these alone, in which all distracts from what is
// asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "needles/needles.h"

namespace modeld {

enum class PairStyle : std::uint8_t {
  /// Members of a JSON object, a UUID each with a UUID (as Retrieve.KV of ∞Bench, arXiv 2402.13718).
  json,
  /// Sentences that give each of many names a number (as the second many-key task of RULER, arXiv 2404.06654).
  lines,
};
/// What is asked for: "uuid", "number".
std::string_view value_name(PairStyle style);

/// Names enough for every style.
inline constexpr std::size_t kPairsMax = 200'000;

/// `count` of them, all with keys of their own. A needle's sentence is `"key": "value"` in JSON.
/// REQUIRES count ≤ kPairsMax.
std::vector<Needle> make_pairs(PairStyle style, std::size_t count, std::uint64_t seed);

}  // namespace modeld
