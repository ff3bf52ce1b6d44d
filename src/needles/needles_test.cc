#include "needles/needles.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "base/digest.h"
#include "needles/pairs.h"

namespace modeld {
namespace {

constexpr std::array kKinds = {NeedleKind::single, NeedleKind::lookalike, NeedleKind::paraphrase, NeedleKind::unrelated,
                               NeedleKind::passkey};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  std::string word;
  for (const char c : std::string(text) + " ") {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0) {
      word += static_cast<char>(std::tolower(u));
    } else if (!word.empty()) {
      result.push_back(std::exchange(word, {}));
    }
  }
  return result;
}

bool is_function_word(const std::string& word) {
  static const std::set<std::string> kWords = {"a",    "an",    "the",  "of",   "is",    "was",   "in",    "at",
                                               "to",   "on",    "for",  "from", "by",    "with",  "what",  "did",
                                               "does", "which", "who",  "as",   "s",     "where", "it",    "that",
                                               "do",   "can",   "than", "so",   "and",   "his",   "be",    "up",
                                               "have", "could", "are",  "than", "while", "near",  "under", "behind"};
  return kWords.contains(word);
}

TEST(Needles, OffersAtLeastSixtyOfEachKindThatIsAskedInNumbers) {
  EXPECT_GE(needles_max(NeedleKind::single), 60U);
  EXPECT_GE(needles_max(NeedleKind::lookalike), 60U);
  EXPECT_GE(needles_max(NeedleKind::paraphrase), 60U);
  EXPECT_GE(needles_max(NeedleKind::unrelated), 40U);
  EXPECT_EQ(needles_max(NeedleKind::passkey), 1U);
}

TEST(Pairs, AllKeysDifferAndEachSentenceStatesItsValueAlone) {
  for (const PairStyle style : {PairStyle::json, PairStyle::lines}) {
    std::set<std::string> questions;
    for (const Needle& pair : make_pairs(style, 5'000, 7)) {
      EXPECT_TRUE(questions.insert(pair.question).second) << pair.question;
      EXPECT_TRUE(answer_contains(pair.sentence, pair.answer)) << pair.sentence;
      EXPECT_FALSE(answer_contains(pair.question, pair.answer)) << pair.question;
      EXPECT_FALSE(answer_contains(pair.answer_prefix, pair.answer)) << pair.answer_prefix;
      EXPECT_EQ(pair.sentence.find('\n'), std::string::npos);
    }
    EXPECT_EQ(make_pairs(style, 3, 7)[2].sentence, make_pairs(style, 5, 7)[2].sentence);
    EXPECT_NE(make_pairs(style, 3, 7)[2].sentence, make_pairs(style, 3, 8)[2].sentence);
  }
}

// What is measured on one machine is measured again on another: each compiler and each standard library must draw the
// same text. Whoever changes the tables or the grammar puts the new digests here.
TEST(Needles, ASeedGivesTheSameTextWithEveryCompiler) {
  EXPECT_EQ(Hasher().text(filler_prose(60'000, 1)).finish().hex(), "a8615c947834aa9014f2ba270a6b1add");
  Hasher planted;
  for (const NeedleKind kind : kKinds) {
    for (const Needle& needle : make_needles(kind, needles_max(kind), 7)) {
      planted.text(needle.sentence).text(needle.question).text(needle.answer);
    }
  }
  EXPECT_EQ(planted.finish().hex(), "31483ad406dc911d309a74e0fcf1e369");
  Hasher pairs;
  for (const PairStyle style : {PairStyle::json, PairStyle::lines}) {
    for (const Needle& pair : make_pairs(style, 50, 7)) pairs.text(pair.sentence).text(pair.question);
  }
  EXPECT_EQ(pairs.finish().hex(), "6ec7cd80244c942977e04c7ff25a8f98");
}

TEST(Needles, EveryNeedleStatesItsAnswerInTheSentenceAndNotInTheQuestion) {
  for (const NeedleKind kind : kKinds) {
    for (const Needle& needle : make_needles(kind, needles_max(kind), 7)) {
      EXPECT_EQ(needle.kind, kind);
      EXPECT_TRUE(answer_contains(needle.sentence, needle.answer)) << needle.sentence;
      EXPECT_FALSE(answer_contains(needle.question, needle.answer)) << needle.question;
      EXPECT_FALSE(answer_contains(needle.answer_prefix, needle.answer)) << needle.answer_prefix;
      EXPECT_EQ(needle.sentence.find('\n'), std::string::npos);
      EXPECT_EQ(needle.sentence.find("{}"), std::string::npos);
      EXPECT_EQ(needle.question.find("{}"), std::string::npos);
      EXPECT_NE(needle.question.find('?'), std::string::npos);
      EXPECT_NE(needle.answer_prefix.back(), ' ');
      EXPECT_LE(words(needle.answer).size(), 3U);
    }
  }
}

TEST(Needles, NoTwoOfAKindShareQuestionOrSentence) {
  for (const NeedleKind kind : kKinds) {
    std::set<std::string> questions;
    std::set<std::string> sentences;
    const auto needles = make_needles(kind, needles_max(kind), 3);
    for (const Needle& needle : needles) {
      questions.insert(needle.question);
      sentences.insert(needle.sentence);
    }
    EXPECT_EQ(questions.size(), needles.size());
    EXPECT_EQ(sentences.size(), needles.size());
  }
}

TEST(Needles, NumbersAreNeverSharedBetweenNeedlesOfATextOfOneKind) {
  for (const NeedleKind kind : {NeedleKind::single, NeedleKind::lookalike}) {
    std::set<std::string> numbers;
    for (const Needle& needle : make_needles(kind, needles_max(kind), 11)) {
      if (std::isdigit(static_cast<unsigned char>(needle.answer[0])) == 0) continue;
      EXPECT_TRUE(numbers.insert(needle.answer).second) << needle.answer;
      EXPECT_GE(needle.answer.size(), 4U);
      EXPECT_LE(needle.answer.size(), 5U);
    }
  }
}

TEST(Needles, AParaphraseSharesTheNameAndNoOtherContentWord) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (const Needle& needle : make_needles(NeedleKind::paraphrase, needles_max(NeedleKind::paraphrase), seed)) {
      const auto fact = words(needle.sentence);
      std::set<std::string> shared;
      for (const std::string& word : words(needle.question))
        if (!is_function_word(word) && std::find(fact.begin(), fact.end(), word) != fact.end()) shared.insert(word);
      EXPECT_EQ(shared.size(), 2U) << needle.sentence << " / " << needle.question;  // first and last name
    }
  }
}

TEST(Needles, AnUnrelatedQuestionSharesNoContentWordWithItsFactAndNeitherDoesItsPrefix) {
  for (const Needle& needle : make_needles(NeedleKind::unrelated, needles_max(NeedleKind::unrelated), 4)) {
    const auto fact = words(needle.sentence);
    for (const std::string& said : {needle.question, needle.answer_prefix}) {
      for (const std::string& word : words(said)) {
        EXPECT_TRUE(is_function_word(word) || std::find(fact.begin(), fact.end(), word) == fact.end())
            << word << ": " << needle.sentence << " / " << said;
      }
    }
  }
}

TEST(Needles, AreAFunctionOfTheSeed) {
  for (const NeedleKind kind : kKinds) {
    const auto a = make_needles(kind, 1, 5);
    const auto b = make_needles(kind, 1, 5);
    const auto c = make_needles(kind, 1, 6);
    EXPECT_EQ(a[0].sentence, b[0].sentence);
    EXPECT_NE(a[0].sentence, c[0].sentence);
  }
}

TEST(Filler, IsLongEnoughDeterministicAndNotRepetitive) {
  const std::string text = filler_prose(60000, 1);
  EXPECT_GE(text.size(), 60000U);
  EXPECT_EQ(text, filler_prose(60000, 1));
  EXPECT_NE(text, filler_prose(60000, 2));
  EXPECT_NE(text.find("\n\n"), std::string::npos);
  const auto all = words(text);
  const std::set<std::string> first(all.begin(), all.begin() + 5000);
  const double ratio = static_cast<double>(first.size()) / 5000.0;
  RecordProperty("type_token_ratio_5000_words", std::to_string(ratio));
  EXPECT_GE(ratio, 0.14);
  std::multiset<std::string> sentences;
  std::string sentence;
  for (const char c : text) {
    sentence += c;
    if (c == '.' || c == '?') sentences.insert(std::exchange(sentence, {}));
  }
  const std::set<std::string> distinct(sentences.begin(), sentences.end());
  EXPECT_GE(static_cast<double>(distinct.size()), 0.97 * static_cast<double>(sentences.size()));
}

TEST(Filler, RepeatedFillerIsTheSameLineAgain) {
  const std::string text = filler_repeated(1000);
  EXPECT_GE(text.size(), 1000U);
  const auto line = text.substr(0, text.find('\n') + 1);
  EXPECT_EQ(text.substr(line.size(), line.size()), line);
}

TEST(Answer, ContainsWantsWholeWordsInAnyCase) {
  EXPECT_TRUE(answer_contains("It is in the Bakery.", "bakery"));
  EXPECT_TRUE(answer_contains("7341", "7341"));
  EXPECT_FALSE(answer_contains("17341", "7341"));
  EXPECT_FALSE(answer_contains("7341,002", "7341"));
  EXPECT_TRUE(answer_contains("1, 7341, 2", "7341"));
  EXPECT_FALSE(answer_contains("bakeryman", "bakery"));
  EXPECT_FALSE(answer_contains("anything", ""));
}

TEST(Answer, BeginsLeavesLeadingSpacesAsideAndWantsAWordEnd) {
  EXPECT_TRUE(answer_begins("  7341.", "7341"));
  EXPECT_TRUE(answer_begins("Ginger beer, of course", "ginger beer"));
  EXPECT_FALSE(answer_begins("73415", "7341"));
  EXPECT_FALSE(answer_begins("the 7341", "7341"));
  EXPECT_FALSE(answer_begins("", "7341"));
}

}  // namespace
}  // namespace modeld
