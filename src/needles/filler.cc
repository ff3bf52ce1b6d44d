// Filler prose: a small grammar over filler_words.h. It has numbers, years and direct speech in it, so that a planted
// fact is not the only line with a figure or a name for a thing.
#include <fmt/format.h>

#include "needles/filler_words.h"
#include "needles/needles.h"
#include "needles/random.h"

namespace modeld {
namespace {

using namespace filler;

/// A pattern filled with draws. In braces: only there does C++ say that what stands first is drawn first; between the
/// parentheses of a call each compiler draws in an order of its own, and one seed would give several texts.
struct Phrase {
  template <typename... Parts>
  Phrase(fmt::format_string<Parts...> pattern, Parts&&... parts)
      : text(fmt::format(pattern, std::forward<Parts>(parts)...)) {}
  std::string text;
};

class Prose {
 public:
  explicit Prose(std::uint64_t seed) : random_(seed) {}

  std::string paragraph() {
    std::string text;
    const std::size_t sentences = 3 + random_.below(6);
    for (std::size_t i = 0; i < sentences; ++i) {
      std::string sentence = make_sentence();
      if (sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
      if (!text.empty()) text += ' ';
      text += sentence;
    }
    return text;
  }

 private:
  std::string_view article(std::string_view word) {
    const bool vowel = std::string_view("aeiou").find(word[0]) != std::string_view::npos;
    // "useful" and "uniform" begin with a consonant's sound, "honest" and "hourglass" with a vowel's.
    if (word.starts_with("us") || word.starts_with("uni")) return "a";
    if (word.starts_with("honest") || word.starts_with("hour")) return "an";
    return vowel ? "an" : "a";
  }

  std::string noun_phrase(std::string_view noun) {
    const std::string_view adjective = random_.pick(kAdjectives);
    switch (random_.below(5)) {
      case 0:
        return Phrase{"{} {}", article(noun), noun}.text;
      case 1:
        return Phrase{"{} {} {}", article(adjective), adjective, noun}.text;
      case 2:
        return Phrase{"the {} {}", adjective, noun}.text;
      case 3:
        return Phrase{"the {}'s {}", random_.pick(kPeople), noun}.text;
      default:
        return Phrase{"the {}", noun}.text;
    }
  }
  std::string person() {
    if (random_.chance(0.4)) return Phrase{"the {}", random_.pick(kPeople)}.text;
    if (random_.chance(0.4)) return Phrase{"the {} {}", random_.pick(kAdjectives), random_.pick(kPeople)}.text;
    if (random_.chance(0.5)) return Phrase{"the {} from the {}", random_.pick(kPeople), random_.pick(kPlaces)}.text;
    return Phrase{"the {}'s {}", random_.pick(kPeople), random_.pick(kPeople)}.text;
  }
  std::string thing() { return noun_phrase(random_.pick(kThings)); }
  std::string place() {
    static constexpr Words kPrepositions[] = {"in", "near", "behind", "beyond", "outside"};
    return Phrase{"{} the {}", random_.pick(kPrepositions), random_.pick(kPlaces)}.text;
  }
  std::string clause() {
    switch (random_.below(4)) {
      case 0:
        return Phrase{"{} {} {}", person(), random_.pick(kIntransitive), place()}.text;
      case 1:
        return Phrase{"{} {} {}", person(), random_.pick(kTransitive), thing()}.text;
      case 2:
        return Phrase{"{} {} {} {}", person(), random_.pick(kTransitive), thing(), random_.pick(kAdverbs)}.text;
      default:
        return Phrase{"{} {} {}", person(), random_.pick(kIntransitive), random_.pick(kAdverbs)}.text;
    }
  }
  std::size_t number() {
    const std::size_t digits = random_.below(3);
    return digits == 0 ? 2 + random_.below(18) : digits == 1 ? 20 + random_.below(900) : 1000 + random_.below(9000);
  }

  std::string make_sentence() {
    switch (random_.below(15)) {
      case 0:
        return clause() + ".";
      case 1:
        return Phrase{"{}, {}.", random_.pick(kTimes), clause()}.text;
      case 2:
        return Phrase{"{}, {} {}.", clause(), random_.pick(kLinks), clause()}.text;
      case 3:
        return Phrase{"{} {} the {}.", random_.pick(kNature), random_.pick(kNatureVerbs), random_.pick(kPlaces)}.text;
      case 4:
        return Phrase{"\"{},\" {} {}.", random_.pick(kSayings), random_.pick(kSaid), person()}.text;
      case 5:
        return Phrase{"It was {} {} from the {} to the {}.", number(), random_.pick(kMeasures), random_.pick(kPlaces),
                      random_.pick(kPlaces)}
            .text;
      case 6:
        return Phrase{"There is more {} than {} in {}, and {} knew it.", random_.pick(kAbstract),
                      random_.pick(kAbstract), thing(), person()}
            .text;
      case 7:
        return Phrase{"Had {} not {} {}, nobody would have {}.", person(), "seen", thing(), "asked"}.text;
      case 8:
        return Phrase{"In {} {} {} {}.", 1700 + random_.below(250), person(), random_.pick(kTransitive), thing()}.text;
      case 9:
        return Phrase{"{} cost {} {}, which was {}.", thing(), number(), random_.pick(kMeasures),
                      random_.chance(0.5) ? "too much" : "a fair price"}
            .text;
      case 10:
        return Phrase{"What became of {} is a question of {}.", thing(), random_.pick(kAbstract)}.text;
      case 11:
        return Phrase{"{} and {} {} together.", person(), person(), random_.pick(kIntransitive)}.text;
      case 12:
        return Phrase{"{} brought {}, {} and {}; {}.", person(), thing(), thing(), thing(), clause()}.text;
      case 13:
        return Phrase{"Who would expect {} {}?", thing(), place()}.text;
      default:
        return Phrase{"{} {} the {}, and {} {} over the {}.",
                      random_.pick(kNature),
                      random_.pick(kNatureVerbs),
                      random_.pick(kPlaces),
                      random_.pick(kAbstract),
                      "lay",
                      random_.pick(kPlaces)}
            .text;
    }
  }

  SeededRandom random_;
};

}  // namespace

std::string filler_prose(std::size_t bytes, std::uint64_t seed) {
  Prose prose(seed);
  std::string text;
  text.reserve(bytes + 1024);
  while (text.size() < bytes) {
    if (!text.empty()) text += "\n\n";
    text += prose.paragraph();
  }
  if (bytes > 0) text += '\n';
  return text;
}

std::string filler_repeated(std::size_t bytes) {
  static constexpr std::string_view kLine =
      "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.\n";
  std::string text;
  text.reserve(bytes + kLine.size());
  while (text.size() < bytes) text += kLine;
  return text;
}

}  // namespace modeld
