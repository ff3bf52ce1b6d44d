#include "needles/word_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace modeld {
namespace {

/// How often each word comes behind the text's first line; numbers of a list ("12.") are no words.
std::map<std::string, std::size_t> counts(const WordList& list) {
  std::map<std::string, std::size_t> counts;
  std::istringstream words(list.text.substr(list.text.find('\n')));
  for (std::string word; words >> word;)
    if (word.find_first_of("0123456789") == std::string::npos) ++counts[word];
  return counts;
}

TEST(WordLists, TenWordsComeThirtyTimesAndAllOthersThreeTimes) {
  for (const std::size_t others : {0U, 100U, 3000U}) {
    const WordList list = make_common_words(others, 5);
    const auto found = counts(list);
    EXPECT_EQ(found.size(), others + 10);
    ASSERT_EQ(list.answers.size(), 10U);
    const std::set<std::string> wanted(list.answers.begin(), list.answers.end());
    EXPECT_EQ(wanted.size(), 10U);
    for (const auto& [word, times] : found) EXPECT_EQ(times, wanted.count(word) == 1 ? 30U : 3U) << word;
  }
}

TEST(WordLists, CommonWordsAreNumberedFromOneAndSpreadOverTheList) {
  const WordList list = make_common_words(500, 5);
  std::istringstream lines(list.text);
  std::string line;
  std::getline(lines, line);
  std::size_t number = 0;
  std::map<std::string, std::set<std::size_t>> quarters;
  while (std::getline(lines, line)) {
    const std::string start = std::to_string(++number) + ". ";
    ASSERT_TRUE(line.starts_with(start)) << line;
    quarters[line.substr(start.size())].insert((number - 1) * 4 / 1800);
  }
  EXPECT_EQ(number, 1800U);
  for (const std::string& word : list.answers) EXPECT_EQ(quarters[word].size(), 4U) << word;
}

TEST(WordLists, FrequenciesOfCodedWordsFallWithTheSquareOfTheirRank) {
  const WordList list = make_frequent_words(6000, 9);
  const auto found = counts(list);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& [word, times] : found) ranked.emplace_back(times, word);
  std::sort(ranked.rbegin(), ranked.rend());
  EXPECT_EQ(ranked[0], std::pair(std::size_t{3647}, std::string("...")));
  const std::size_t wanted[] = {911, 405, 227};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ranked[i + 1], std::pair(wanted[i], list.answers[i]));
  EXPECT_GT(ranked[3].first, ranked[4].first);
  for (std::size_t i = 1; i < ranked.size(); ++i) EXPECT_EQ(ranked[i].second.size(), 6U);
}

TEST(WordLists, TheThreeMostFrequentAreCertainInTheShortestText) {
  const WordList list = make_frequent_words(kCodedWordsMin, 2);
  const auto found = counts(list);
  std::size_t as_frequent = 0;
  for (const auto& [word, times] : found) as_frequent += word != "..." && times >= found.at(list.answers[2]);
  EXPECT_EQ(as_frequent, 3U);
}

TEST(WordLists, TheSameSeedGivesTheSameTextAndAnotherSeedAnother) {
  EXPECT_EQ(make_common_words(700, 1).text, make_common_words(700, 1).text);
  EXPECT_NE(make_common_words(700, 1).answers, make_common_words(700, 2).answers);
  EXPECT_EQ(make_frequent_words(700, 1).text, make_frequent_words(700, 1).text);
  EXPECT_NE(make_frequent_words(700, 1).answers, make_frequent_words(700, 2).answers);
}

TEST(WordLists, AListOfAnyLengthHasTheSameMostCommonWordsForASeed) {
  EXPECT_EQ(make_common_words(50, 3).answers, make_common_words(5000, 3).answers);
}

}  // namespace
}  // namespace modeld
