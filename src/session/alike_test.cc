// Facts of one kind in several blocks: of each the sentences that matter are read.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "needles/quiz.h"
#include "session/frame.h"
#include "session/session_fixture.h"
#include "session/stream_text.h"

namespace modeld {
namespace {

using testing::World;

TEST(Alike, OfEachBlockTheSentencesThatMatterAreReadAndTheRestStaysCold) {
  World world;
  const Quiz quiz = make_quizzes("values", 1, 5).front();
  std::vector<Needle> needles;
  std::vector<double> depths;
  for (const QuizSentence& sentence : quiz.sentences) {
    needles.push_back({NeedleKind::single, sentence.text, quiz.question, sentence.answer, quiz.answer_prefix});
    depths.push_back(0.15 + 0.2 * static_cast<double>(depths.size()));
  }
  world.text = plant(filler_prose(60'000, 3), needles, depths).text;
  world.calibration.reading.blocks = 4;
  SessionSettings settings = World::settings();
  settings.reread.returns = 0;
  const auto session = world.open_with_text(settings);
  Question question;
  question.text = quiz.question;
  question.answer_prefix = quiz.answer_prefix;
  question.answer_tokens_max = 4;
  const auto answer = session->ask(question);
  ASSERT_TRUE(answer) << to_text(answer.error());
  ASSERT_EQ(answer->retrieved.size(), 4U);
  std::set<std::string> sentences;
  for (const QuizSentence& sentence : quiz.sentences) sentences.insert(sentence.text);
  const std::vector<StreamRange> blocks = session->blocks();
  std::int64_t read = 0;
  std::int64_t whole = 0;
  for (const Passage& passage : answer->retrieved) {
    const auto found = std::find_if(sentences.begin(), sentences.end(), [&](const std::string& sentence) {
      return passage.text.find(sentence) != std::string::npos;
    });
    ASSERT_NE(found, sentences.end()) << passage.text;
    sentences.erase(found);
    const auto block =
        std::find_if(blocks.begin(), blocks.end(), [&](const StreamRange& one) { return one.overlaps(passage.range); });
    ASSERT_NE(block, blocks.end());
    EXPECT_TRUE(block->begin <= passage.range.begin && passage.range.end <= block->end);
    whole += block->size();
    read += passage.range.size();
  }
  EXPECT_LT(read, whole / 2);
  EXPECT_EQ(answer->prompt_tokens, answer->attended_tokens + answer->cold_tokens + answer->dropped_tokens);
  EXPECT_EQ(session->check_integrity(), "");
  // The same question without retrieval attends as much less as was read.
  question.retrieve = false;
  const auto without = session->ask(question);
  ASSERT_TRUE(without) << to_text(without.error());
  EXPECT_EQ(answer->attended_tokens - without->attended_tokens, read);
  EXPECT_EQ(without->cold_tokens - answer->cold_tokens, read);
}

TEST(StreamText, SentencesCoverARangeAndNoneIsATitleAlone) {
  const auto engine = open_scripted({});
  const auto frame = make_frame(*engine);
  ASSERT_TRUE(frame) << to_text(frame.error());
  StreamText text(*frame);
  const TextPart part{"book.txt",
                      "The lighthouse keeper counted nine ships that evening. Dr. Ambrose Quill of the old harbour "
                      "office wrote it down.\nA short line\nand another line that is long enough to stand alone\nEnd.",
                      SegmentKind::user};
  ASSERT_TRUE(text.append(*engine, std::span(&part, 1), nullptr));
  const StreamRange all{StreamPos(0), text.end()};
  const std::vector<StreamRange> sentences = text.sentences(all);
  ASSERT_GE(sentences.size(), 2U);
  EXPECT_EQ(sentences.front().begin, all.begin);
  EXPECT_EQ(sentences.back().end, all.end);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    EXPECT_GE(sentences[i].size(), 8) << text.text(sentences[i]);
    if (i > 0) {
      EXPECT_EQ(sentences[i].begin, sentences[i - 1].end);
    }
  }
  const auto holding = [&](std::string_view words) {
    return std::find_if(sentences.begin(), sentences.end(), [&](const StreamRange& sentence) {
      return text.text(sentence).find(words) != std::string::npos;
    });
  };
  EXPECT_EQ(holding("Dr."), holding("Ambrose Quill of the old harbour office wrote it down."));
  EXPECT_NE(holding("nine ships that evening."), holding("Ambrose"));
  EXPECT_NE(holding("Ambrose"), holding("stand alone"));
  // A range that is too short for a sentence is one, and none has none.
  EXPECT_EQ(text.sentences({all.begin, all.begin + 3}).size(), 1U);
  EXPECT_TRUE(text.sentences({all.begin, all.begin}).empty());
}

}  // namespace
}  // namespace modeld
