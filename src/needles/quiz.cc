#include "needles/quiz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/check.h"
#include "needles/names.h"
#include "needles/needles.h"

namespace modeld {
namespace {

/// RULER's own numbers: four values or keys a question, chains of four steps.
constexpr std::size_t kTogether = 4;
constexpr std::size_t kChain = 5;
constexpr std::size_t kVersions = 3;

class QuizMaker {
 public:
  explicit QuizMaker(std::uint64_t seed) : random_(seed) {}

  Quiz number() { return of_name("number", fresh_number()); }
  Quiz uuid() { return of_name("uuid", some_uuid(random_)); }

  Quiz values() {
    const std::string name = fresh_name();
    Quiz quiz;
    for (std::size_t i = 0; i < kTogether; ++i) {
      std::string value = fresh_number();
      quiz.sentences.push_back({fmt::format("One of the magic numbers of {} is {}.", name, value), value});
    }
    quiz.question = fmt::format("What are all the magic numbers of {}?", name);
    quiz.answer_prefix = fmt::format("The magic numbers of {} are", name);
    return quiz;
  }

  Quiz queries() {
    std::vector<std::string> names;
    Quiz quiz;
    for (std::size_t i = 0; i < kTogether; ++i) {
      names.push_back(fresh_name());
      quiz.sentences.push_back(sentence("number", names.back(), fresh_number()));
    }
    const std::string all = fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
    quiz.question = fmt::format("What are the magic numbers of {}?", all);
    quiz.answer_prefix = fmt::format("The magic numbers of {} are", all);
    return quiz;
  }

  Quiz chain() {
    const std::string value = fresh_number();
    Quiz quiz;
    std::string before = value;
    for (std::size_t i = 0; i < kChain; ++i) {
      const std::string variable = fresh_.next([&] {
        std::string letters(5, 'A');
        for (char& letter : letters) letter = static_cast<char>('A' + random_.below(26));
        return letters;
      });
      quiz.sentences.push_back({fmt::format("VAR {} = {}.", variable, before), variable});
      before = "VAR " + variable;
    }
    quiz.question = fmt::format("Which five variables have the value {}, directly or through another variable?", value);
    quiz.answer_prefix = fmt::format("The variables that have the value {} are", value);
    return quiz;
  }

  Quiz update() {
    return versions(kVersions - 1, "What is the magic number of {} now?", "The magic number of {} is now");
  }
  Quiz earlier() {
    return versions(1, "What was the second of the magic numbers that {} had?", "The second magic number of {} was");
  }

 private:
  std::string fresh_name() {
    return fresh_.next([&] { return some_name(random_); });
  }
  std::string fresh_number() {
    return fresh_.next([&] { return some_number(random_); });
  }

  static QuizSentence sentence(std::string_view what, std::string_view name, const std::string& value) {
    return {fmt::format("The magic {} of {} is {}.", what, name, value), value};
  }

  Quiz of_name(std::string_view what, const std::string& value) {
    const std::string name = fresh_name();
    return {.sentences = {sentence(what, name, value)},
            .question = fmt::format("What is the magic {} of {}?", what, name),
            .answer_prefix = fmt::format("The magic {} of {} is", what, name)};
  }

  /// One name's numbers, the later in force of the earlier; `wanted` is asked for.
  Quiz versions(std::size_t wanted, std::string_view question, std::string_view prefix) {
    const std::string name = fresh_name();
    Quiz quiz;
    for (std::size_t i = 0; i < kVersions; ++i) {
      std::string value = fresh_number();
      quiz.sentences.push_back({fmt::format("The magic number of {} is {}{}.", name, i == 0 ? "" : "now ", value),
                                i == wanted ? value : ""});
    }
    quiz.question = fmt::format(fmt::runtime(question), name);
    quiz.answer_prefix = fmt::format(fmt::runtime(prefix), name);
    return quiz;
  }

  SeededRandom random_;
  Fresh fresh_;
};

struct OfOneFact {
  std::string_view name;
  NeedleKind kind;
};
constexpr std::array kOfOneFact = {
    OfOneFact{"single", NeedleKind::single}, OfOneFact{"lookalike", NeedleKind::lookalike},
    OfOneFact{"paraphrase", NeedleKind::paraphrase}, OfOneFact{"unrelated", NeedleKind::unrelated}};

struct Made {
  std::string_view name;
  Quiz (QuizMaker::*make)();
};
constexpr std::array kMade = {Made{"number", &QuizMaker::number},  Made{"uuid", &QuizMaker::uuid},
                              Made{"values", &QuizMaker::values},  Made{"queries", &QuizMaker::queries},
                              Made{"chain", &QuizMaker::chain},    Made{"update", &QuizMaker::update},
                              Made{"earlier", &QuizMaker::earlier}};

constexpr auto kKinds = [] {
  std::array<std::string_view, kOfOneFact.size() + kMade.size()> names;
  auto* const made = std::transform(kOfOneFact.begin(), kOfOneFact.end(), names.begin(),
                                    [](const OfOneFact& kind) { return kind.name; });
  std::transform(kMade.begin(), kMade.end(), made, [](const Made& kind) { return kind.name; });
  return names;
}();

}  // namespace

std::vector<std::string> Quiz::answers() const {
  std::vector<std::string> wanted;
  for (const QuizSentence& sentence : sentences)
    if (!sentence.answer.empty()) wanted.push_back(sentence.answer);
  return wanted;
}

std::span<const std::string_view> quiz_kinds() { return kKinds; }

std::vector<Quiz> make_quizzes(std::string_view kind, std::size_t count, std::uint64_t seed) {
  std::vector<Quiz> quizzes;
  for (const OfOneFact& fact : kOfOneFact) {
    if (fact.name != kind) continue;
    for (Needle& needle : make_needles(fact.kind, std::min(count, needles_max(fact.kind)), seed))
      quizzes.push_back({.sentences = {{std::move(needle.sentence), std::move(needle.answer)}},
                         .question = std::move(needle.question),
                         .answer_prefix = std::move(needle.answer_prefix)});
    return quizzes;
  }
  const auto* const made = std::find_if(kMade.begin(), kMade.end(), [&](const Made& one) { return one.name == kind; });
  MODELD_CHECK(made != kMade.end());
  // Each kind draws names and numbers of its own.
  QuizMaker maker(seed * kMade.size() + static_cast<std::uint64_t>(made - kMade.begin()));
  for (std::size_t i = 0; i < count; ++i) quizzes.push_back((maker.*made->make)());
  return quizzes;
}

}  // namespace modeld
