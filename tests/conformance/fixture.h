// The stage that every rule is played on: an engine with a fresh context, and short words for what the rules do.
//
// Invariant: each step ends with the engine's own check of its books.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/engine_case.h"
#include "conformance/logits.h"
#include "engine/engine.h"

namespace modeld {

class Conformance : public testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// A new context of the case's KV type; the old one's cells are gone.
  void open(std::int32_t cells = 512, std::int32_t sequences = 4, std::int32_t batch = 64);
  Engine& engine() { return *engine_; }
  void use(Engine* engine) { engine_ = engine; }

  /// The first `count` tokens of a text in which little repeats.
  [[nodiscard]] std::vector<Token> story(std::size_t count) const;
  /// About 100 tokens that end in the middle of a sentence that only the right passage before it can finish, and how it
  /// goes on: a key that was turned wrongly shows.
  struct Unfinished {
    std::vector<Token> prompt;
    std::vector<Token> tail;
  };
  [[nodiscard]] Unfinished unfinished() const;
  [[nodiscard]] std::vector<Token> tokens(std::string_view text) const;
  [[nodiscard]] std::string text(std::span<const Token> tokens) const;

  /// Expects success and sound books.
  void must(const Status& status);
  /// Expects this error, sound books and nothing changed in extents and cells used.
  template <typename Call>
  void must_refuse(ErrorCode code, std::string_view what, Call call) {
    const State before = state();
    const auto result = call();
    expect_error(code, what, result ? nullptr : &result.error());
    EXPECT_EQ(state(), before) << what;
  }

  /// Computes in one call, behind what the sequence holds (an empty one starts at `start`); logits after the last
  /// token.
  Logits feed(std::span<const Token> tokens, SeqId seq = 0, std::int32_t start = 0);
  /// The same with the logits after every token, row behind row.
  std::vector<Logits> feed_all(std::span<const Token> tokens, SeqId seq = 0);
  /// As feed(), one call a token.
  Logits decode(std::span<const Token> tokens, SeqId seq = 0);
  static std::vector<BatchToken> batch_of(std::span<const Token> tokens, SeqId seq, std::int32_t place);
  KvPayload take_out(SeqId seq, std::int32_t begin, std::int32_t end);
  void evict(SeqId seq, std::int32_t begin, std::int32_t end);
  void admit(SeqId seq, const KvPayload& payload, std::int32_t at);
  static PlaceRange places(std::int32_t begin, std::int32_t end) { return {Place(begin), Place(end)}; }
  void expect_extent(SeqId seq, std::int32_t begin, std::int32_t end);
  /// Greedy continuation from `logits`; stops at the end of generation.
  std::string continue_greedily(Logits logits, SeqId seq, int count);

  void expect_near(const Logits& reference, const Logits& logits, std::string_view what);
  void expect_near_computed(const Logits& reference, const Logits& logits, std::string_view what);
  /// Of the row that differs most.
  void expect_near(const std::vector<Logits>& reference, const std::vector<Logits>& logits, std::string_view what);
  [[nodiscard]] double bound() const { return GetParam().bound; }
  static void expect_within(double kl, double bound, std::string_view what);

 private:
  struct State {
    std::vector<PlaceRange> extents;
    std::int32_t used = 0;
    ContextSpec spec;
    friend bool operator==(const State& a, const State& b) {
      return a.extents == b.extents && a.used == b.used && a.spec.cells == b.spec.cells;
    }
  };
  State state();
  void expect_error(ErrorCode code, std::string_view what, const Error* error);

  Engine* engine_ = nullptr;
};

inline std::string case_name(const testing::TestParamInfo<EngineCase>& info) { return info.param.name; }

/// Rules in which the KV type plays no part.
class Rules : public Conformance {};
/// Rules in which it does.
class KvRules : public Conformance {};

}  // namespace modeld
