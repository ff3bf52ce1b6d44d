// Keys of which there are many, none like another. Private to this folder.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "needles/filler_words.h"
#include "needles/random.h"

namespace modeld {

/// Adjective-person-thing: "quiet-baker-lantern".
inline std::string some_name(SeededRandom& random) {
  const std::string_view adjective = random.pick(filler::kAdjectives);
  const std::string_view person = random.pick(filler::kPeople);
  return fmt::format("{}-{}-{}", adjective, person, random.pick(filler::kThings));
}
inline constexpr std::size_t kNames =
    std::size(filler::kAdjectives) * std::size(filler::kPeople) * std::size(filler::kThings);

inline std::string some_uuid(SeededRandom& random) {
  std::string text = "00000000-0000-0000-0000-000000000000";
  for (char& digit : text)
    if (digit != '-') digit = "0123456789abcdef"[random.below(16)];
  return text;
}

/// Seven digits.
inline std::string some_number(SeededRandom& random) { return fmt::format("{}", 1'000'000 + random.below(9'000'000)); }

/// What `draw` gives first that it has not given before.
class Fresh {
 public:
  template <typename Draw>
  std::string next(Draw draw) {
    while (true) {
      std::string one = draw();
      if (given_.insert(one).second) return one;
    }
  }

 private:
  std::set<std::string> given_;
};

}  // namespace modeld
