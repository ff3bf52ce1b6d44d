#include "needles/word_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/check.h"
#include "needles/filler_words.h"
#include "needles/names.h"
#include "needles/random.h"

namespace modeld {
namespace {

constexpr std::string_view kNoise = "...";
constexpr std::size_t kCodedLetters = 6;

/// ζ(2) = Σ 1/k², what makes the shares of all ranks add up to one.
constexpr double kZetaOfTwo = 1.6449340668482264;

/// The single words of the filler's lists, each once, in the lists' order.
std::vector<std::string> plain_words() {
  std::vector<std::string> words;
  const auto add = [&words](const auto& list) {
    for (const std::string_view word : list) {
      const bool single = std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
      if (single && std::find(words.begin(), words.end(), word) == words.end()) words.emplace_back(word);
    }
  };
  add(filler::kPeople);
  add(filler::kThings);
  add(filler::kPlaces);
  add(filler::kAdjectives);
  add(filler::kAbstract);
  add(filler::kTransitive);
  return words;
}

/// As many words as are wanted, no two the same.
std::vector<std::string> many_words(std::size_t count, SeededRandom& random) {
  const std::vector<std::string> plain = plain_words();
  // Compounds are drawn until one is new, so most must be.
  MODELD_CHECK(plain.size() * plain.size() > 2 * kOtherWordsMax);
  std::vector<std::string> words = plain;
  random.shuffle(words);
  Fresh fresh;
  for (const std::string& word : words) fresh.next([&word] { return word; });
  while (words.size() < count) {
    words.push_back(fresh.next([&] {
      // One word, not two with a hyphen: else each half would be found in it as an answer.
      const std::string& first = plain[random.below(plain.size())];
      return first + plain[random.below(plain.size())];
    }));
  }
  words.resize(count);
  return words;
}

std::string coded_word(SeededRandom& random) {
  std::string word(kCodedLetters, 'a');
  for (char& letter : word) letter = static_cast<char>('a' + random.below(26));
  return word;
}

}  // namespace

WordList make_common_words(std::size_t others, std::uint64_t seed) {
  MODELD_CHECK(others <= kOtherWordsMax);
  SeededRandom random(seed);
  const std::vector<std::string> words = many_words(kCommonWords + others, random);
  std::vector<std::size_t> order;
  order.reserve(kCommonWords * kCommonTimes + others * kOtherTimes);
  for (std::size_t w = 0; w < words.size(); ++w)
    order.insert(order.end(), w < kCommonWords ? kCommonTimes : kOtherTimes, w);
  random.shuffle(order);
  WordList list;
  list.text = "Below is a numbered list of words. Some of them come more often than others.\n";
  for (std::size_t i = 0; i < order.size(); ++i) list.text += fmt::format("{}. {}\n", i + 1, words[order[i]]);
  list.question = fmt::format("What are the {} most common words in the list?", kCommonWords);
  list.answer_prefix = fmt::format("The {} words that come most often in the list are:", kCommonWords);
  list.answers.assign(words.begin(), words.begin() + kCommonWords);
  return list;
}

WordList make_frequent_words(std::size_t count, std::uint64_t seed) {
  MODELD_CHECK(count >= kCodedWordsMin);
  SeededRandom random(seed);
  Fresh fresh;
  std::vector<std::string> words;
  std::vector<std::size_t> order;
  for (std::size_t rank = 1;; ++rank) {
    const double share = 1.0 / (static_cast<double>(rank) * static_cast<double>(rank) * kZetaOfTwo);
    const auto times = static_cast<std::size_t>(std::floor(static_cast<double>(count) * share));
    if (times == 0) break;
    words.push_back(rank == 1 ? std::string(kNoise) : fresh.next([&random] { return coded_word(random); }));
    order.insert(order.end(), times, rank - 1);
  }
  random.shuffle(order);
  WordList list;
  list.text = "Below is a text of coded words. Some of them come more often than others.\n";
  for (const std::size_t w : order) list.text += words[w] + " ";
  list.text.back() = '\n';
  list.question = fmt::format("Leave the dots \"{}\" out. What are the {} most frequent words in the coded text?",
                              kNoise, kFrequentWords);
  list.answer_prefix = fmt::format("The {} most frequent words in the coded text are:", kFrequentWords);
  list.answers.assign(words.begin() + 1, words.begin() + 1 + kFrequentWords);
  return list;
}

}  // namespace modeld
