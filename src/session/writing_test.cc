#include "session/writing.h"

#include <gtest/gtest.h>

#include "engine/scripted/open.h"

namespace modeld {
namespace {

class WritingTest : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> engine_ = open_scripted({});

  Writing begin(std::int32_t limit = 100, bool one_line = false) const {
    return {*engine_, Question{}, limit, one_line};
  }
  [[nodiscard]] std::vector<Token> tokens(std::string_view text) const { return *engine_->tokenize(text, false, true); }
  void say(Writing& writing, std::string_view text) const {
    for (const Token token : tokens(text)) {
      std::vector<float> logits(static_cast<std::size_t>(engine_->geometry().vocabulary), 0.0F);
      logits[static_cast<std::size_t>(token)] = 1.0F;
      EXPECT_EQ(writing.next(logits), token);
    }
  }
};

TEST_F(WritingTest, NothingIsShownBeforeItIsKeptAndNothingKeptIsTakenBack) {
  std::string shown;
  const TextSink sink = [&shown](std::string_view piece) { shown += piece; };
  Writing writing = begin();
  say(writing, "The code");
  EXPECT_EQ(shown, "");
  writing.keep(sink);
  EXPECT_EQ(shown, "The code");
  say(writing, " is wrong");
  EXPECT_EQ(writing.all_text(), "The code is wrong");
  EXPECT_EQ(writing.held(), tokens(" is wrong").size());
  writing.take_back();
  EXPECT_EQ(writing.held(), 0U);
  say(writing, " was right");
  writing.keep(sink);
  EXPECT_EQ(shown, "The code was right");
  EXPECT_EQ(writing.text(), shown);
  EXPECT_EQ(writing.kept().size(), writing.tokens().size());
}

TEST_F(WritingTest, ACharacterIsShownWhole) {
  std::string shown;
  Writing writing = begin();
  for (const Token token : tokens("é")) {
    std::vector<float> logits(static_cast<std::size_t>(engine_->geometry().vocabulary), 0.0F);
    logits[static_cast<std::size_t>(token)] = 1.0F;
    writing.next(logits);
    writing.keep([&shown](std::string_view piece) {
      EXPECT_EQ(piece.size(), whole_utf8(piece));
      shown += piece;
    });
  }
  EXPECT_EQ(shown, "é");
}

TEST_F(WritingTest, TheLimitEndsItAndTakingBackGoesOn) {
  Writing writing = begin(static_cast<std::int32_t>(tokens("one two").size()));
  say(writing, "one two");
  EXPECT_TRUE(writing.done());
  EXPECT_FALSE(writing.finished());
  writing.take_back();
  EXPECT_FALSE(writing.done());
}

TEST_F(WritingTest, ALineEndEndsOneLineAnswersButNotBeforeTheFirstWord) {
  Writing writing = begin(100, true);
  say(writing, "\n");
  EXPECT_FALSE(writing.done());
  say(writing, "word");
  say(writing, "\n");
  EXPECT_TRUE(writing.done());
  EXPECT_TRUE(writing.finished());
  writing.keep({});
  EXPECT_EQ(writing.text(), "word");
}

TEST_F(WritingTest, AnEndTokenFinishesIt) {
  Writing writing = begin();
  say(writing, "word");
  say(writing, "<|im_end|>");
  EXPECT_TRUE(writing.done());
  EXPECT_TRUE(writing.finished());
  writing.keep({});
  EXPECT_EQ(writing.text(), "word");
  EXPECT_EQ(writing.tokens().size(), tokens("word").size());
}

}  // namespace
}  // namespace modeld
