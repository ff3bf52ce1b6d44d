#include "recall/lexical.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace modeld {
namespace {

constexpr double kK1 = 1.2;
constexpr double kB = 0.75;

enum class Kind : std::uint8_t { none, lower, upper, digit, underscore };

Kind ascii_kind(char c) {
  if (c >= 'a' && c <= 'z') return Kind::lower;
  if (c >= 'A' && c <= 'Z') return Kind::upper;
  if (c >= '0' && c <= '9') return Kind::digit;
  return c == '_' ? Kind::underscore : Kind::none;
}

char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Length of the UTF-8 character that starts at `at`, and whether it belongs to words. A byte that starts none counts
/// as a letter of length 1: damaged text still matches itself.
std::pair<std::size_t, bool> wide_character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(at);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  if (length == 1 || at + length > text.size()) return {1, true};
  std::uint32_t code = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80U) return {1, true};
    code = (code << 6U) | (byte(at + i) & 0x3fU);
  }
  const auto within = [code](std::uint32_t low, std::uint32_t high) { return code >= low && code <= high; };
  // Latin-1 signs (but not the ordinals and the micro sign), general punctuation to arrows and boxes, CJK and
  // full-width punctuation, byte order mark. Dashes and curly quotes would otherwise glue words together.
  const bool sign = (within(0x80, 0xbf) && code != 0xaa && code != 0xb5 && code != 0xba) || code == 0xd7 ||
                    code == 0xf7 || within(0x2000, 0x206f) || within(0x2190, 0x2bff) || within(0x3000, 0x303f) ||
                    within(0xff01, 0xff0f) || within(0xff1a, 0xff20) || code == 0xfeff;
  return {length, !sign};
}

/// Length of the word character at `at`; 0 when there is none.
std::size_t word_character(std::string_view text, std::size_t at) {
  if (static_cast<unsigned char>(text[at]) < 0x80) return ascii_kind(text[at]) == Kind::none ? 0 : 1;
  const auto [length, in_word] = wide_character(text, at);
  return in_word ? length : 0;
}

std::size_t character_length(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]) < 0x80 ? 1 : wide_character(text, at).first;
}

/// Whether an identifier is split before `word[i]`: where letters and digits meet, at fooBar, and before the last
/// capital of HTTPServer.
bool splits_before(std::string_view word, std::size_t i) {
  const auto kind = [&](std::size_t at) {
    return static_cast<unsigned char>(word[at]) >= 0x80 ? Kind::lower : ascii_kind(word[at]);
  };
  const Kind before = kind(i - 1);
  const Kind here = kind(i);
  if (before == Kind::underscore || here == Kind::underscore) return true;
  if ((before == Kind::digit) != (here == Kind::digit)) return true;
  if (here != Kind::upper) return false;
  return before == Kind::lower || (i + 1 < word.size() && kind(i + 1) == Kind::lower);
}

std::string lowered(std::string_view word) {
  std::string out(word);
  std::transform(out.begin(), out.end(), out.begin(), ascii_lower);
  return out;
}

template <typename Sink>
void split_word(std::string_view word, Sink&& sink) {
  if (word.find_first_not_of('_') == std::string_view::npos) return;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= word.size(); ++i) {
    if (i < word.size() && !splits_before(word, i)) continue;
    if (word[begin] != '_' && i - begin < word.size()) sink(lowered(word.substr(begin, i - begin)));
    begin = i;
  }
  sink(lowered(word));
}

template <typename Sink>
void each_word(std::string_view text, Sink&& sink) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size()) {
      const std::size_t length = word_character(text, end);
      if (length == 0) break;
      end += length;
    }
    if (end == at) {
      at += character_length(text, at);
      continue;
    }
    sink(text.substr(at, end - at));
    at = end;
  }
}

template <typename Sink>
void each_term(std::string_view text, Sink&& sink) {
  each_word(text, [&](std::string_view word) { split_word(word, sink); });
}

std::uint64_t hash_of(std::string_view term) { return XXH3_64bits(term.data(), term.size()); }

std::vector<std::uint64_t> sorted_hashes(std::string_view text) {
  std::vector<std::uint64_t> hashes;
  each_term(text, [&](const std::string& term) { hashes.push_back(hash_of(term)); });
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

std::vector<std::uint64_t> distinct_hashes(std::string_view text) {
  std::vector<std::uint64_t> hashes = sorted_hashes(text);
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  return hashes;
}

}  // namespace

std::vector<std::string> lexical_terms(std::string_view text) {
  std::vector<std::string> terms;
  each_term(text, [&](std::string term) { terms.push_back(std::move(term)); });
  return terms;
}

std::vector<std::string> lexical_words(std::string_view text) {
  std::vector<std::string> words;
  each_word(text, [&](std::string_view word) { words.push_back(lowered(word)); });
  return words;
}

std::vector<std::size_t> LexicalIndex::holders(std::string_view term) const {
  std::vector<std::size_t> blocks;
  const auto found = postings_.find(hash_of(term));
  if (found == postings_.end()) return blocks;
  for (const Posting& posting : found->second) blocks.push_back(posting.block);
  return blocks;
}

double LexicalIndex::weight(std::size_t holders) const {
  const auto count = static_cast<double>(blocks());
  const auto holding = static_cast<double>(holders);
  // A word that most blocks hold tells them apart by chance only; a rank list made of such words would be noise.
  if (2.0 * holding > count) return 0.0;
  const double idf = std::log1p((count - holding + 0.5) / (holding + 0.5));
  return idf * idf;
}

void LexicalIndex::append(std::string_view text) {
  const std::vector<std::uint64_t> hashes = sorted_hashes(text);
  const auto block = static_cast<std::uint32_t>(lengths_.size());
  for (auto it = hashes.begin(); it != hashes.end();) {
    const auto next = std::upper_bound(it, hashes.end(), *it);
    auto& list = postings_[*it];
    // Most words occur once or twice in a text: grown by halves, from one, their lists stay small.
    if (list.size() == list.capacity()) {
      const std::size_t before = list.capacity();
      list.reserve(before + before / 2 + 1);
      posting_slots_ += list.capacity() - before;
    }
    list.push_back({block, static_cast<std::uint32_t>(next - it)});
    it = next;
  }
  lengths_.push_back(static_cast<std::uint32_t>(hashes.size()));
  total_length_ += hashes.size();
}

std::int64_t LexicalIndex::bytes() const {
  // What the GNU C++ library and allocator take: a node is link, hash and list in one piece of the heap; each list is
  // another.
  constexpr std::size_t kHeapOverhead = 8;
  constexpr std::size_t kNode = sizeof(void*) + sizeof(std::uint64_t) + sizeof(std::vector<Posting>) + kHeapOverhead;
  const std::size_t total = postings_.size() * (kNode + kHeapOverhead) + postings_.bucket_count() * sizeof(void*) +
                            posting_slots_ * sizeof(Posting) + lengths_.capacity() * sizeof(std::uint32_t);
  return static_cast<std::int64_t>(total);
}

std::vector<double> LexicalIndex::score(std::string_view question) const {
  std::vector<double> scores(blocks(), 0.0);
  const auto count = static_cast<double>(blocks());
  const double mean_length = std::max(1.0, static_cast<double>(total_length_) / std::max(1.0, count));
  for (const std::uint64_t hash : distinct_hashes(question)) {
    const auto found = postings_.find(hash);
    if (found == postings_.end()) continue;
    const double rare = weight(found->second.size());
    if (rare == 0.0) continue;
    for (const Posting& posting : found->second) {
      const double frequency = posting.count;
      const double length = static_cast<double>(lengths_[posting.block]) / mean_length;
      scores[posting.block] += rare * frequency * (kK1 + 1.0) / (frequency + kK1 * (1.0 - kB + kB * length));
    }
  }
  return scores;
}

double LexicalIndex::most(std::string_view question) const {
  double most = 0.0;
  for (const std::uint64_t hash : distinct_hashes(question)) {
    const auto found = postings_.find(hash);
    most += weight(found == postings_.end() ? 0 : found->second.size());
  }
  return most;
}

double LexicalIndex::covered(std::string_view question, std::span<const double> scores) const {
  const auto best = std::max_element(scores.begin(), scores.end());
  const double all = most(question);
  return best == scores.end() || all == 0.0 ? 0.0 : *best / all;
}

}  // namespace modeld
