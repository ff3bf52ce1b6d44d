// Several hops in a session: passages that lead to others are followed as far as the settings say.
#include <gtest/gtest.h>

#include <algorithm>

#include "needles/quiz.h"
#include "session/session_fixture.h"

namespace modeld {
namespace {

using testing::World;

class FollowTest : public ::testing::Test {
 protected:
  FollowTest() {
    std::vector<Needle> needles;
    std::vector<double> depths;
    const auto add = [&](const Quiz& quiz, double first, double step) {
      for (const QuizSentence& sentence : quiz.sentences) {
        needles.push_back({NeedleKind::single, sentence.text, quiz.question, sentence.answer, quiz.answer_prefix});
        depths.push_back(first);
        first += step;
      }
    };
    add(quiz_, 0.85, -0.15);
    // Chains that nobody asks for, so that VAR is no rare word.
    double first = 0.05;
    for (const Quiz& other : make_quizzes("chain", 3, 99)) add(other, first += 0.01, 0.16);
    world_.text = plant(filler_prose(60'000, 3), needles, depths).text;
  }

  /// How many of the chain's sentences were read.
  std::size_t links_read(std::int32_t follow, std::int32_t hot = 1536) {
    SessionSettings settings = World::settings(hot);
    settings.reread.returns = 0;
    settings.follow = follow;
    const auto session = world_.open_with_text(settings);
    Question question;
    question.text = quiz_.question;
    question.answer_prefix = quiz_.answer_prefix;
    question.answer_tokens_max = 4;
    const auto answer = session->ask(question);
    if (!answer) {
      ADD_FAILURE() << to_text(answer.error());
      return 0;
    }
    EXPECT_LE(std::ssize(answer->retrieved), world_.calibration.reading.blocks + follow);
    EXPECT_EQ(answer->prompt_tokens, answer->attended_tokens + answer->cold_tokens + answer->dropped_tokens);
    EXPECT_EQ(session->check_integrity(), "");
    const auto read = [&](const QuizSentence& sentence) {
      return std::any_of(answer->retrieved.begin(), answer->retrieved.end(),
                         [&](const Passage& passage) { return passage.text.find(sentence.text) != std::string::npos; });
    };
    return static_cast<std::size_t>(std::count_if(quiz_.sentences.begin(), quiz_.sentences.end(), read));
  }

  World world_;
  Quiz quiz_ = make_quizzes("chain", 1, 5).front();
};

TEST_F(FollowTest, EveryLinkIsReadWhereAsManyMayBeFollowed) {
  const std::size_t found = links_read(0);
  EXPECT_GE(found, 1U);
  EXPECT_LT(found, 4U);
  EXPECT_EQ(links_read(1), found + 1);
  EXPECT_EQ(links_read(4), 5U);
}

TEST_F(FollowTest, AHotSetWithoutRoomForAllReadsFewer) {
  const std::size_t read = links_read(8, 700);
  EXPECT_GE(read, 1U);
  EXPECT_LT(read, 5U);
}

TEST_F(FollowTest, LessThanNoneIsRefused) {
  SessionSettings settings = World::settings();
  settings.follow = -1;
  const auto session = Session::create(*world_.engine, *world_.store, world_.calibration, settings);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::bad_argument);
}

}  // namespace
}  // namespace modeld
