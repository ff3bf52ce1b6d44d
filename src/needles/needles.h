// Planted facts: seeded generators of facts, of questions about them and of filler text. For calibration, evaluation
// and demo.
//
// Everything is a function of the seed. All sentences are the project's own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld {

enum class NeedleKind : std::uint8_t {
  /// One fact of its kind: "The secret number of the lighthouse keeper is 7341."
  single,
  /// Many facts that differ in one name: "The access code for Lisbon is 5520."
  lookalike,
  /// Asked in other words that keep the name.
  paraphrase,
  /// Asked without any content word of the fact.
  unrelated,
  /// The classic "The pass key is 12345. Remember it."
  passkey,
};
std::string_view to_text(NeedleKind kind);

struct Needle {
  NeedleKind kind = NeedleKind::single;
  /// One or two whole sentences without line ends.
  std::string sentence;
  std::string question;
  /// What a right answer contains.
  std::string answer;
  /// Text that an answer may begin with, up to where `answer` must follow (no trailing space; the answer follows after
  /// a space).
  std::string answer_prefix;
};

/// `count` needles that do not answer each other's questions. REQUIRES count ≤ needles_max(kind).
std::vector<Needle> make_needles(NeedleKind kind, std::size_t count, std::uint64_t seed);
std::size_t needles_max(NeedleKind kind);

struct PlantedNeedle {
  Needle needle;
  /// Bytes of the sentence in the planted text.
  std::size_t begin = 0;
  std::size_t end = 0;
};
struct PlantedText {
  std::string text;
  std::vector<PlantedNeedle> needles;  // ascending
};
/// Puts each needle as a line or sentence of its own at the sentence or line end nearest to its depth (0 … 1, one for
/// each needle).
PlantedText plant(std::string_view text, std::span<const Needle> needles, std::span<const double> depths);

/// At least `bytes` of varied prose in paragraphs, from a seeded grammar with a large vocabulary.
std::string filler_prose(std::size_t bytes, std::uint64_t seed);
/// The classic repeated filler ("The grass is green. The sky is blue. …").
std::string filler_repeated(std::size_t bytes);

/// Whether `answer` occurs in `text` as a whole word, case-insensitively.
bool answer_contains(std::string_view text, std::string_view answer);
/// Whether `text` begins with `answer`, leading spaces aside, followed by a non-word character or the end.
bool answer_begins(std::string_view text, std::string_view answer);

}  // namespace modeld
