// The tables behind the planted facts. Private to this folder.
#pragma once

#include <span>
#include <string_view>

namespace modeld::facts {

/// What a single fact's answer is drawn from.
enum class Pool : unsigned char {
  digits,
  colour,
  animal,
  fruit,
  metal,
  tree,
  drink,
  cloth,
  stone,
  tool,
  spot,
  room,
  trade,
  dish,
  cause,
  pet,
  land,
  sport,
  ride,
  fear,
  instrument,
};

/// "The {attribute} of the {holder} is {value}."
struct SingleRow {
  std::string_view attribute;
  std::string_view holder;
  Pool pool;
};
std::span<const SingleRow> single_rows();
/// Words of a pool; empty for digits.
std::span<const std::string_view> pool_words(Pool pool);

std::span<const std::string_view> cities();

/// A fact and a question about it that share the name ("{}") and no other content word.
struct ParaphraseRow {
  std::string_view before;    // sentence up to the answer
  std::string_view after;     // sentence after the answer
  std::string_view question;  // whole
  std::string_view prefix;    // answer prefix
  std::span<const std::string_view> answers;
};
std::span<const ParaphraseRow> paraphrase_rows();

/// A fact and a question about it that share no content word.
struct UnrelatedRow {
  std::string_view before;    // sentence up to the answer
  std::string_view after;     // sentence after the answer
  std::string_view question;  // whole
  std::string_view prefix;    // answer prefix
  Pool pool;
};
std::span<const UnrelatedRow> unrelated_rows();

/// As many first names as last names, none of which occurs twice.
std::span<const std::string_view> first_names();
std::span<const std::string_view> last_names();

}  // namespace modeld::facts
