// Questions about planted sentences, by the name of their kind: those of one fact (needles.h), and those whose answers
// stand in several sentences, in the manner of RULER (Hsieh et al. 2024, arXiv 2404.06654): several values of a key,
// several keys at once, chains of variables; and facts that are updated later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld {

struct QuizSentence {
  std::string text;
  /// The answer that it gives; empty: it is in the way.
  std::string answer;
};

struct Quiz {
  /// In the order in which they must stand in the text.
  std::vector<QuizSentence> sentences;
  std::string question;
  /// Text that an answer may begin with; the answer follows after a space.
  std::string answer_prefix;
  /// The wanted ones, in the order of their sentences.
  [[nodiscard]] std::vector<std::string> answers() const;
};

/// single, lookalike, paraphrase, unrelated (needles.h); number and uuid, by a name; values: all four of a name;
/// queries: those of four names; chain: five variables that have one value; update: the newest of three; earlier: the
/// second of three.
std::span<const std::string_view> quiz_kinds();

/// `count` questions of a kind that do not answer each other; fewer where there are not as many. REQUIRES one of
/// quiz_kinds().
std::vector<Quiz> make_quizzes(std::string_view kind, std::size_t count, std::uint64_t seed);

}  // namespace modeld
