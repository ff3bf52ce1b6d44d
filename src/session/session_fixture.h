// What tests over a session share: a long text with planted facts, and a session over the scripted engine.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/scripted/open.h"
#include "needles/needles.h"
#include "session/session.h"

namespace modeld::testing {

inline Calibration scripted_calibration() {
  Calibration calibration;
  calibration.model = "scripted";
  calibration.heads = {{HeadRef{1, 0}, 0.9}};
  calibration.distance = 64;
  calibration.rule = ScoreRule::sigmoid;
  calibration.reading.sinks = 16;
  calibration.reading.recent = 256;
  calibration.reading.run_up = 8;
  calibration.reading.blocks = 3;
  return calibration;
}

struct World {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ColdStore> store;
  Calibration calibration = scripted_calibration();
  std::vector<Needle> needles;
  std::string text;

  /// `bytes` of filler with look-alike facts planted evenly.
  explicit World(std::size_t bytes = 120'000, std::size_t facts = 6, ScriptedOptions options = {},
                 std::int64_t budget = std::int64_t{1} << 30U)
      : engine(open_scripted(std::move(options))), store(std::make_unique<ColdStore>(budget)) {
    needles = make_needles(NeedleKind::lookalike, facts, 7);
    std::vector<double> depths;
    for (std::size_t i = 0; i < facts; ++i) {
      depths.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(facts));
    }
    text = plant(filler_prose(bytes, 3), needles, depths).text;
  }

  static SessionSettings settings(std::int32_t hot = 1536) {
    SessionSettings settings;
    settings.hot_tokens = hot;
    settings.answer_tokens = 32;
    settings.reread.returns = 2;
    return settings;
  }

  std::unique_ptr<Session> open(const SessionSettings& settings) {
    auto session = Session::create(*engine, *store, calibration, settings);
    if (!session) ADD_FAILURE() << to_text(session.error());
    return session ? std::move(*session) : nullptr;
  }
  std::unique_ptr<Session> open_with_text(const SessionSettings& settings) {
    auto session = open(settings);
    const TextPart part{"book.txt", text, SegmentKind::user};
    if (const Status done = session->append(std::span(&part, 1)); !done) ADD_FAILURE() << to_text(done.error());
    return session;
  }
};

/// Asked with the answer begun, so that a model of two layers can finish it.
inline Question question_of(const Needle& needle) {
  Question question;
  question.text = needle.question;
  question.answer_prefix = needle.answer_prefix;
  question.answer_tokens_max = 4;
  return question;
}

/// What a session says: its stream, its blocks, and the answers to all questions with what was read for them.
struct Said {
  std::vector<Token> stream;
  std::vector<StreamRange> blocks;
  std::vector<std::vector<Token>> answers;
  std::vector<std::vector<StreamRange>> read;
  friend bool operator==(const Said&, const Said&) = default;
};

inline Said all_of(Session& session, const std::vector<Needle>& needles) {
  Said said;
  for (const Needle& needle : needles) {
    const auto answer = session.ask(question_of(needle));
    if (!answer) {
      ADD_FAILURE() << to_text(answer.error());
      return said;
    }
    EXPECT_TRUE(answer_begins(answer->text, needle.answer)) << needle.sentence << " → " << answer->text;
    said.answers.push_back(answer->tokens);
    std::vector<StreamRange> read;
    for (const Passage& passage : answer->retrieved) read.push_back(passage.range);
    said.read.push_back(std::move(read));
  }
  said.stream = session.stream();
  said.blocks = session.blocks();
  EXPECT_EQ(session.check_integrity(), "");
  return said;
}

}  // namespace modeld::testing
