// Lists of words that are asked about as a whole: which come most often? No passage answers that.
// After the two aggregation tasks of RULER (arXiv 2404.06654); the words are our own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace modeld {

/// A text of words and those that are asked for.
struct WordList {
  std::string text;
  std::string question;
  std::string answer_prefix;
  /// The most frequent first; of equal ones in no order.
  std::vector<std::string> answers;
};

/// RULER's own numbers.
inline constexpr std::size_t kCommonWords = 10;
inline constexpr std::size_t kCommonTimes = 30;
inline constexpr std::size_t kOtherTimes = 3;
inline constexpr std::size_t kFrequentWords = 3;
/// Other words that a list of common words can have, and coded words in all that make the most frequent three certain.
inline constexpr std::size_t kOtherWordsMax = 100'000;
inline constexpr std::size_t kCodedWordsMin = 100;

/// A numbered list in shuffled order, a word a line: ten words kCommonTimes each, `others` words kOtherTimes each. The
/// ten are plain words; of the others those beyond the plain ones are compounds of two.
/// REQUIRES others ≤ kOtherWordsMax.
WordList make_common_words(std::size_t others, std::uint64_t seed);

/// At most `count` words in shuffled order, of which the k-th most frequent comes count ÷ (k²·ζ(2)) times, rounded
/// down: Zipf's law with the exponent 2. The most frequent is noise ("..."), all others six letters that mean nothing.
/// REQUIRES count ≥ kCodedWordsMin.
WordList make_frequent_words(std::size_t count, std::uint64_t seed);

}  // namespace modeld
