// What the scripted engine adds to the contract; the contract itself is tested in tests/conformance.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "engine/scripted/open.h"

namespace modeld {
namespace {

constexpr std::string_view kFacts =
    "The code of London is 1802. The code of Paris is 4711. The code of Rome is 5530. All other towns have none.\n";

struct Fixture {
  explicit Fixture(const ScriptedOptions& options = {}, const ContextSpec& spec = {.cells = 2048, .sequences = 2})
      : engine(open_scripted(options)) {
    EXPECT_TRUE(engine->open_context(spec));
  }
  std::vector<Token> tokens(std::string_view text) const { return engine->tokenize(text, false, true).value(); }
  Status feed(std::span<const Token> tokens, SeqId seq = 0, bool logits = true) const {
    std::vector<BatchToken> batch;
    Place place = engine->extent(seq).end;
    for (const Token token : tokens) {
      batch.push_back({token, place, seq, false});
      ++place;
    }
    if (!batch.empty()) batch.back().logits = logits;
    return engine->compute(batch);
  }
  Token best(std::size_t index) const {
    const auto all = engine->logits(index);
    return static_cast<Token>(std::ranges::max_element(all) - all.begin());
  }
  std::string answer(std::string_view prompt) const {
    const auto fed = tokens(prompt);
    EXPECT_TRUE(feed(fed));
    return engine->piece(best(fed.size() - 1));
  }
  std::unique_ptr<Engine> engine;
};

TEST(ScriptedEngine, CopiesTheAnswerFromWhatIsResident) {
  for (const RopeStyle style : {RopeStyle::norm, RopeStyle::neox}) {
    for (const KvType type : kKvTypes) {
      for (const auto& [town, code] : {std::pair{"London", " 1802"}, {"Paris", " 4711"}, {"Rome", " 5530"}}) {
        const Fixture f({.rope = style}, {.cells = 2048, .sequences = 2, .kv_type = type});
        ASSERT_TRUE(f.feed(f.tokens(kFacts)));
        EXPECT_EQ(f.answer(std::string("Tell me: The code of ") + town + " is"), code) << town << to_text(type);
      }
    }
  }
}

TEST(ScriptedEngine, FindsOneFactAmongAThousandTokens) {
  const Fixture f;
  for (int i = 0; i < 120; ++i) {
    if (i == 40) {
      ASSERT_TRUE(f.feed(f.tokens("The code of Paris is 4711. ")));
    }
    ASSERT_TRUE(f.feed(f.tokens("Line " + std::to_string(i) + " is about item" + std::to_string(i * 7) + " only. ")));
  }
  EXPECT_EQ(f.answer("The code of Paris is"), " 4711");
}

TEST(ScriptedEngine, AnotherSeedIsAnotherModel) {
  const auto one = open_scripted({.seed = 1});
  const auto other = open_scripted({.seed = 2});
  EXPECT_NE(one->identity(), other->identity());
  EXPECT_EQ(one->identity(), open_scripted({.seed = 1})->identity());
  const Fixture a({.seed = 1});
  const Fixture b({.seed = 2});
  ASSERT_TRUE(a.feed(a.tokens("one two three")));
  const auto payload = a.engine->export_range(0, {Place(0), Place(3)});
  ASSERT_TRUE(payload);
  EXPECT_EQ(b.engine->admit(0, *payload, Place(0)).error().code, ErrorCode::payload_invalid);
}

TEST(ScriptedEngine, SharedLexiconsAgreeOnIds) {
  const auto lexicon = std::make_shared<Lexicon>(300);
  const auto one = open_scripted({.lexicon = lexicon});
  const auto other = open_scripted({.lexicon = lexicon});
  const auto tokens = one->tokenize("some words in a small table", false, false).value();
  EXPECT_EQ(other->tokenize("some words in a small table", false, false).value(), tokens);
}

TEST(ScriptedEngine, AWindowedLayerSeesItsWindowOnly) {
  const auto with_window = [](std::int32_t window) {
    const Fixture f({.windows = {0, window}});
    EXPECT_TRUE(f.feed(f.tokens(kFacts)));
    return f.answer("The code of Paris is");
  };
  EXPECT_EQ(with_window(64), " 4711");
  EXPECT_NE(with_window(16), " 4711");
  EXPECT_EQ(open_scripted({.windows = {0, 16}})->geometry().layers[1].window, 16);
}

TEST(ScriptedEngine, RefusesAContextLargerThanItsDevice) {
  const auto engine = open_scripted({.device_bytes = 4'000'000});
  EXPECT_TRUE(engine->open_context({.cells = 100}));
  const auto refused = engine->open_context({.cells = 100'000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::device_budget_exceeded);
  EXPECT_FALSE(refused.error().numbers.empty());
  EXPECT_EQ(engine->context().cells, 100) << "a refusal must leave the open context";
}

TEST(ScriptedEngine, FailsAtTheComputeThatTheScriptNames) {
  const Fixture f({.fail_at_compute = 2});
  EXPECT_TRUE(f.feed(f.tokens("one two three")));
  const auto failed = f.feed(f.tokens(" four five"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::engine_failed);
  EXPECT_TRUE(f.engine->open_context({.cells = 64}));
  EXPECT_TRUE(f.feed(f.tokens("one two three")));
}

TEST(ScriptedEngine, WritesChatMlOrNothing) {
  const std::vector<ChatMessage> chat = {{"user", "Hello"}};
  const auto with = open_scripted({});
  EXPECT_EQ(with->render_chat(chat, true).value(), "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_TRUE(with->geometry().has_chat_template);
  const auto without = open_scripted({.chat_template = false});
  EXPECT_EQ(without->render_chat(chat, true).error().code, ErrorCode::unsupported_operation);
  EXPECT_FALSE(without->geometry().has_chat_template);
}

TEST(ScriptedEngine, BosComesOnlyWhereTheModelWantsIt) {
  EXPECT_EQ(open_scripted({.adds_bos = true})->tokenize("a", true, false).value().front(), Lexicon::kBos);
  EXPECT_EQ(open_scripted({.adds_bos = true})->tokenize("a", false, false).value().size(), 1U);
  EXPECT_EQ(open_scripted({.adds_bos = false})->tokenize("a", true, false).value().size(), 1U);
}

// A guard against the day when a change makes tests that stream long texts slow; the bound is loose for shared cores.
TEST(ScriptedEngine, StreamsTensOfThousandsOfTokensInSeconds) {
  const Fixture f({}, {.cells = 1100, .sequences = 1});
  const auto begin = std::chrono::steady_clock::now();
  const auto words =
      f.tokens(" alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho");
  std::vector<Token> chunk;
  for (int i = 0; i < 100; ++i) chunk.push_back(words[static_cast<std::size_t>(i * i) % words.size()]);
  for (int i = 0; i < 200; ++i) {
    const auto held = f.engine->extent(0);
    if (held.size() > 1000) {
      ASSERT_TRUE(f.engine->evict(0, {Place(0), held.end - 1000}));
    }
    ASSERT_TRUE(f.feed(chunk, 0, false));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_LT(took.count(), 30.0);
  EXPECT_EQ(f.engine->check_integrity(), "");
}

}  // namespace
}  // namespace modeld
