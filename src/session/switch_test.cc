// Sessions that take turns on one engine: only the hot set moves, and each says what it says alone.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "session/session_fixture.h"

namespace modeld {
namespace {

using testing::all_of;
using testing::question_of;
using testing::Said;
using testing::World;

/// Sessions of texts of their own over one engine and one store.
struct Sessions {
  World world;
  std::vector<std::string> texts;
  std::vector<std::vector<Needle>> needles;
  std::vector<Said> alone;
  std::vector<std::unique_ptr<Session>> open;

  explicit Sessions(const std::vector<std::size_t>& sizes, const SessionSettings& settings = World::settings())
      : world(1'000, 1) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      needles.push_back(make_needles(NeedleKind::lookalike, 4, 7 + i));
      texts.push_back(plant(filler_prose(sizes[i], 3 + i), needles.back(), std::vector{0.1, 0.3, 0.6, 0.8}).text);
      alone.push_back(all_of(*begin(i, settings), needles[i]));
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) open.push_back(begin(i, settings));
  }
  std::unique_ptr<Session> begin(std::size_t i, const SessionSettings& settings) {
    auto session = world.open(settings);
    const TextPart part{"book.txt", texts[i], SegmentKind::user};
    EXPECT_TRUE(session->append(std::span(&part, 1)));
    return session;
  }
};

TEST(Switch, EachSaysWhatItSaysAloneAndComputesNoMoreThanForASecondQuestion) {
  Sessions sessions({40'000, 60'000, 30'000});
  std::vector<Answer> second;
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(sessions.open[i]->ask(question_of(sessions.needles[i][0])));
    const auto answer = sessions.open[i]->ask(question_of(sessions.needles[i][0]));
    ASSERT_TRUE(answer);
    second.push_back(*answer);
  }
  for (const std::size_t i : {0U, 2U, 1U, 2U, 0U, 0U, 1U}) {
    const auto answer = sessions.open[i]->ask(question_of(sessions.needles[i][0]));
    ASSERT_TRUE(answer) << to_text(answer.error());
    EXPECT_EQ(answer->tokens, second[i].tokens);
    EXPECT_EQ(answer->computed_tokens, second[i].computed_tokens);
    EXPECT_EQ(answer->recomputed_tokens, second[i].recomputed_tokens);
    for (const auto& session : sessions.open) EXPECT_EQ(session->check_integrity(), "");
  }
  for (const std::size_t i : {1U, 0U, 2U}) EXPECT_EQ(all_of(*sessions.open[i], sessions.needles[i]), sessions.alone[i]);
}

TEST(Switch, ShortSessionsInExactModeAmongLongOnes) {
  Sessions sessions({2'000, 40'000, 2'500});
  for (const std::size_t i : {0U, 1U, 2U, 0U, 2U, 1U, 1U, 0U})
    EXPECT_EQ(all_of(*sessions.open[i], sessions.needles[i]), sessions.alone[i]) << i;
}

TEST(Switch, WhileOneIsBeingReadAnotherMayAsk) {
  Sessions sessions({40'000, 30'000});
  // Stops after some blocks, as often as it takes; the other asks in between.
  int stops = 0;
  while (true) {
    CancelFlag cancel;
    int told = 0;
    const ProgressSink progress = [&](const Progress&) {
      if (++told == 3) cancel.request();
    };
    const Status read = sessions.open[0]->ingest(progress, &cancel);
    EXPECT_EQ(all_of(*sessions.open[1], sessions.needles[1]), sessions.alone[1]);
    if (read) break;
    ASSERT_EQ(read.error().code, ErrorCode::cancelled);
    ++stops;
  }
  EXPECT_GT(stops, 3);
  EXPECT_EQ(all_of(*sessions.open[0], sessions.needles[0]), sessions.alone[0]);
}

TEST(Switch, ASessionThatEndsLeavesTheOthersAsTheyAre) {
  Sessions sessions({40'000, 30'000});
  ASSERT_TRUE(sessions.open[0]->ask(question_of(sessions.needles[0][0])));
  ASSERT_TRUE(sessions.open[1]->ingest());
  sessions.open[1].reset();
  EXPECT_EQ(all_of(*sessions.open[0], sessions.needles[0]), sessions.alone[0]);
}

}  // namespace
}  // namespace modeld
