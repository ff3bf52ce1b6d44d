#include "recall/lexical.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace modeld {
namespace {

using Terms = std::vector<std::string>;

Terms sorted_terms(std::string_view text) {
  Terms terms = lexical_terms(text);
  std::sort(terms.begin(), terms.end());
  return terms;
}

std::size_t best(const LexicalIndex& index, std::string_view question) {
  const auto scores = index.score(question);
  return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

TEST(LexicalTerms, AreLowerCasedRunsOfLettersAndDigits) {
  EXPECT_EQ(lexical_terms("The old violin, is KEPT -- behind."),
            (Terms{"the", "old", "violin", "is", "kept", "behind"}));
  EXPECT_TRUE(lexical_terms("").empty());
  EXPECT_TRUE(lexical_terms(" .,;!? --- ___ \n").empty());
}

TEST(LexicalTerms, IdentifiersAreKeptWholeAndSplit) {
  EXPECT_EQ(sorted_terms("default_timeout_ms"), (Terms{"default", "default_timeout_ms", "ms", "timeout"}));
  EXPECT_EQ(sorted_terms("parseHTTPServer"), (Terms{"http", "parse", "parsehttpserver", "server"}));
  EXPECT_EQ(sorted_terms("sha256"), (Terms{"256", "sha", "sha256"}));
  EXPECT_EQ(sorted_terms("__init__"), (Terms{"__init__", "init"}));
  EXPECT_EQ(sorted_terms("BLOCK_SIZE"), (Terms{"block", "block_size", "size"}));
  EXPECT_EQ(sorted_terms("Word"), (Terms{"word"}));
}

TEST(LexicalTerms, LettersBeyondAsciiBelongToWordsAndSignsDoNot) {
  EXPECT_EQ(lexical_terms("Stra\u00dfe caf\u00e9 \u041c\u043e\u0441\u043a\u0432\u0430"),
            (Terms{"stra\u00dfe", "caf\u00e9", "\u041c\u043e\u0441\u043a\u0432\u0430"}));
  EXPECT_EQ(lexical_terms("\u201cword\u201d\u2014another\u2026 it\u2019s \u00abso\u00bb"),
            (Terms{"word", "another", "it", "s", "so"}));
}

RC_GTEST_PROP(LexicalTerms, AnyBytesAreTaken, (const std::string& text)) {
  for (const std::string& term : lexical_terms(text)) RC_ASSERT(!term.empty());
}

TEST(LexicalTerms, EveryLeadByteAtTheEndIsTaken) {
  for (int lead = 0; lead < 256; ++lead) {
    for (const char* tail : {"", "\x80", "\x80\x80", "x"})
      (void)lexical_terms(std::string(1, static_cast<char>(lead)) + tail);
  }
}

LexicalIndex prose() {
  LexicalIndex index;
  index.append("the garden was quiet and the gate of the garden was green");
  index.append("the old violin is kept behind the bakery, and it is the best of them");
  index.append("what is it that the people of the town want to know, the man asked");
  index.append("the code for Lisbon is 4711 and the code for Oslo is in the drawer");
  index.append("the rain and the wind of the night went over the town");
  return index;
}

TEST(LexicalIndex, RareWordsDecideAWordyQuestion) {
  LexicalIndex index = prose();
  // On a text of some length the question's own words turn up everywhere, several at once here and there.
  for (int i = 0; i < 6; ++i) {
    index.append("what is it that people want, where they want it, and what is to be");
    index.append("a place where it rained on the hills all through the long winter number " + std::to_string(i));
  }
  EXPECT_EQ(best(index, "What is it that is the place of the violin, and where is it that the people want it to be?"),
            1U);
  EXPECT_EQ(best(index, "what is the code for lisbon"), 3U);
}

TEST(LexicalIndex, ScoresZeroWhereNoWordOccurs) {
  const LexicalIndex index = prose();
  const auto scores = index.score("violin");
  for (std::size_t b = 0; b < scores.size(); ++b) EXPECT_EQ(scores[b] > 0.0, b == 1) << b;
}

TEST(LexicalIndex, AQuestionWithoutWordsOrOfCommonWordsScoresNothing) {
  const LexicalIndex index = prose();
  for (const char* question : {"", "?!", "the of and", "THE", "zebra xylophone"}) {
    for (const double score : index.score(question)) EXPECT_EQ(score, 0.0) << question;
  }
  EXPECT_TRUE(LexicalIndex().score("anything").empty());
  LexicalIndex blank;
  blank.append("");
  EXPECT_EQ(blank.score("anything"), std::vector<double>{0.0});
}

TEST(LexicalIndex, FollowsTheFormula) {
  LexicalIndex index;
  index.append("apple apple pear");
  index.append("plum plum plum plum plum");
  index.append("fig");
  const double idf = std::log(1.0 + (3.0 - 1.0 + 0.5) / 1.5);
  const double expected = idf * idf * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 3.0 / 3.0));
  EXPECT_DOUBLE_EQ(index.score("apple")[0], expected);
  EXPECT_DOUBLE_EQ(index.score("apple apple APPLE")[0], expected);
}

TEST(LexicalIndex, MostIsWhatABlockOfMeanLengthWithEachWordOnceWouldScore) {
  LexicalIndex index;
  index.append("the heron waits");
  index.append("the miller sleeps");
  index.append("the river sleeps");
  EXPECT_DOUBLE_EQ(index.most("heron waits, heron waits"), index.score("heron waits")[0]);
  // A word that no block holds weighs most of all; one that all hold nothing.
  EXPECT_DOUBLE_EQ(index.most("heron zebra"), index.most("heron") + index.weight(0));
  EXPECT_EQ(index.most("the"), 0.0);
  const auto covered = [&](std::string_view question) { return index.covered(question, index.score(question)); };
  EXPECT_DOUBLE_EQ(covered("heron waits"), 1.0);
  EXPECT_DOUBLE_EQ(covered("heron zebra"), index.most("heron") / index.most("heron zebra"));
  EXPECT_EQ(covered("the"), 0.0);
  EXPECT_EQ(LexicalIndex().covered("heron", {}), 0.0);
  EXPECT_EQ(index.most(""), 0.0);
}

/// English prose of the licences that every Debian system has.
std::string real_text() {
  std::string text;
  const std::filesystem::path directory = "/usr/share/common-licenses";
  if (!std::filesystem::is_directory(directory)) return text;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ostringstream content;
    content << std::ifstream(file).rdbuf();
    text += content.str();
  }
  return text;
}

TEST(LexicalIndex, TakesLessThanSixtyBytesATokenOfRealText) {
  const std::string text = real_text();
  ASSERT_GE(text.size(), 100000U) << "Debian's base-files brings licence texts in /usr/share/common-licenses";
  constexpr std::size_t kBytesPerToken = 4;  // of English, about
  LexicalIndex index;
  for (std::size_t at = 0; at < text.size(); at += 128 * kBytesPerToken)
    index.append(text.substr(at, 128 * kBytesPerToken));
  const double per_token = static_cast<double>(index.bytes()) * kBytesPerToken / static_cast<double>(text.size());
  RecordProperty("bytes_per_token", std::to_string(per_token));
  EXPECT_LT(per_token, 60.0);
}

}  // namespace
}  // namespace modeld
