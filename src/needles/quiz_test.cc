#include "needles/quiz.h"

#include <gtest/gtest.h>

#include <set>

#include "needles/needles.h"

namespace modeld {
namespace {

TEST(Quiz, EachWantedAnswerStandsInItsSentenceAndInNoOther) {
  for (const std::string_view kind : quiz_kinds()) {
    std::vector<QuizSentence> all;
    for (const Quiz& quiz : make_quizzes(kind, 30, 5))
      all.insert(all.end(), quiz.sentences.begin(), quiz.sentences.end());
    for (const Quiz& quiz : make_quizzes(kind, 30, 5)) {
      ASSERT_FALSE(quiz.answers().empty()) << kind;
      for (const std::string& answer : quiz.answers()) {
        EXPECT_FALSE(answer_contains(quiz.question, answer)) << quiz.question;
        EXPECT_FALSE(answer_contains(quiz.answer_prefix, answer)) << quiz.answer_prefix;
      }
      // Those kinds' answers come again; a chain's next variable is set to the one before.
      if (kind == "chain" || kind == "paraphrase" || kind == "single" || kind == "unrelated") continue;
      for (const QuizSentence& one : all) {
        for (const std::string& answer : quiz.answers()) {
          EXPECT_EQ(answer_contains(one.text, answer), one.answer == answer) << one.text;
        }
      }
    }
  }
}

TEST(Quiz, SentencesAreDistinctLinesAndKindsShareNone) {
  std::set<std::string> seen;
  for (const std::string_view kind : quiz_kinds()) {
    std::set<std::string> questions;
    for (const Quiz& quiz : make_quizzes(kind, 40, 9)) {
      EXPECT_TRUE(questions.insert(quiz.question).second) << quiz.question;
      for (const QuizSentence& sentence : quiz.sentences) {
        EXPECT_TRUE(seen.insert(sentence.text).second) << sentence.text;
        EXPECT_EQ(sentence.text.find('\n'), std::string::npos);
        EXPECT_TRUE(sentence.answer.empty() || answer_contains(sentence.text, sentence.answer)) << sentence.text;
      }
    }
  }
}

TEST(Quiz, AChainLeadsFromTheValueThroughEveryVariable) {
  for (const Quiz& quiz : make_quizzes("chain", 20, 3)) {
    ASSERT_EQ(quiz.sentences.size(), 5U);
    EXPECT_EQ(quiz.answers().size(), 5U);
    for (std::size_t i = 1; i < quiz.sentences.size(); ++i)
      EXPECT_TRUE(quiz.sentences[i].text.ends_with("= VAR " + quiz.sentences[i - 1].answer + "."))
          << quiz.sentences[i].text;
  }
}

TEST(Quiz, TheNewestOfThreeVersionsCountsForAnUpdateAndTheSecondForAnEarlierOne) {
  for (const Quiz& quiz : make_quizzes("update", 10, 3)) {
    ASSERT_EQ(quiz.sentences.size(), 3U);
    EXPECT_FALSE(quiz.sentences[2].answer.empty());
    EXPECT_EQ(quiz.answers().size(), 1U);
  }
  for (const Quiz& quiz : make_quizzes("earlier", 10, 3)) {
    EXPECT_FALSE(quiz.sentences[1].answer.empty());
    EXPECT_EQ(quiz.answers().size(), 1U);
  }
}

TEST(Quiz, IsAFunctionOfTheSeedAndTheFirstOnesDoNotDependOnTheNumber) {
  for (const std::string_view kind : {"number", "values", "chain"}) {
    EXPECT_EQ(make_quizzes(kind, 3, 7)[2].question, make_quizzes(kind, 8, 7)[2].question);
    EXPECT_NE(make_quizzes(kind, 3, 7)[2].question, make_quizzes(kind, 3, 8)[2].question);
  }
}

}  // namespace
}  // namespace modeld
