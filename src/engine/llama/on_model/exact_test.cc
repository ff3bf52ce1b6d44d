// Exact mode, observation and cancelling, against llama.cpp used directly.
#include <gtest/gtest.h>
#include <llama.h>

#include <chrono>
#include <thread>

#include "engine/llama/on_model/test_model.h"
#include "model/rope.h"

namespace modeld {
namespace {

using namespace on_model;

struct FreeModel {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct FreeContext {
  void operator()(llama_context* context) const { llama_free(context); }
};

/// Logits after the last token, computed by llama.cpp alone: batches of 512, then one token at a time.
std::vector<std::vector<float>> plain(const std::filesystem::path& path, std::span<const Token> prompt,
                                      std::span<const Token> then, const ContextSpec& spec) {
  const std::unique_ptr<llama_model, FreeModel> model(
      llama_model_load_from_file(path.c_str(), llama_model_default_params()));
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(spec.cells);
  params.n_batch = 512;
  params.n_ubatch = 512;
  params.n_threads = spec.threads;
  params.n_threads_batch = spec.threads;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.swa_full = true;
  const std::unique_ptr<llama_context, FreeContext> context(llama_init_from_model(model.get(), params));
  const auto width = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model.get())));
  std::vector<std::vector<float>> rows;
  const auto step = [&](std::span<const Token> tokens) {
    std::vector<llama_token> copy(tokens.begin(), tokens.end());
    EXPECT_EQ(llama_decode(context.get(), llama_batch_get_one(copy.data(), static_cast<std::int32_t>(copy.size()))), 0);
    const float* row = llama_get_logits_ith(context.get(), -1);
    rows.emplace_back(row, row + width);
  };
  for (std::size_t i = 0; i < prompt.size(); i += 512)
    step(prompt.subspan(i, std::min<std::size_t>(512, prompt.size() - i)));
  rows.erase(rows.begin(), rows.end() - 1);
  for (const Token& token : then) step({&token, 1});
  return rows;
}

TEST(LlamaExact, LogitsAreBitEqualToPlainLlamaCppWithTheSameBatchBoundaries) {
  for (const auto& path : {smollm2(), gemma3()}) {
    Engine& engine = opened(path);
    const ContextSpec spec{.cells = 1024, .sequences = 1, .threads = 1};
    expect_ok(engine.open_context(spec));
    const auto tokens = text_tokens(engine, 568);
    const std::span<const Token> prompt(tokens.data(), 560);
    const std::span<const Token> then(tokens.data() + 560, 8);
    expect_ok(engine.compute(batch_of(prompt)));
    std::vector<std::vector<float>> ours = {last_logits(engine, 559)};
    for (std::size_t i = 0; i < then.size(); ++i) {
      expect_ok(engine.compute(batch_of({&then[i], 1}, 560 + static_cast<std::int32_t>(i))));
      ours.push_back(last_logits(engine, 0));
    }
    const auto theirs = plain(path, prompt, then, spec);
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(ours[i], theirs[i]) << path << " row " << i;
    EXPECT_EQ(engine.check_integrity(), "");
  }
}

TEST(LlamaExact, LogitsOfEarlierPassesStayReadable) {
  Engine& engine = opened(smollm2());
  expect_ok(engine.open_context({.cells = 256, .sequences = 1, .batch = 64}));
  const auto tokens = text_tokens(engine, 90);
  auto batch = batch_of(tokens);
  batch[10].logits = true;
  batch[63].logits = true;
  expect_ok(engine.compute(batch));
  const auto early = last_logits(engine, 10);
  const auto edge = last_logits(engine, 63);
  ASSERT_FALSE(early.empty());
  EXPECT_TRUE(engine.logits(11).empty());
  EXPECT_TRUE(engine.logits(9999).empty());
  expect_ok(engine.open_context({.cells = 256, .sequences = 1, .batch = 64}));
  batch.resize(64);
  expect_ok(engine.compute(batch));
  EXPECT_EQ(last_logits(engine, 10), early);
  EXPECT_EQ(last_logits(engine, 63), edge);
}

/// Rotating what was seen before RoPE gives what is seen after it, in order, over several passes.
void check_observation(const std::filesystem::path& path) {
  Engine& engine = opened(path);
  expect_ok(engine.open_context({.cells = 256, .sequences = 1, .batch = 64}));
  const auto tokens = text_tokens(engine, 150);
  const std::int32_t start = 37;
  const auto last = static_cast<std::int32_t>(engine.geometry().layers.size()) - 1;
  ObserveSpec spec{.queries = {{0, 1}, {last, 0}, {5, 2}}, .keys = {{0, 0}, {last, 0}}, .before_rope = true};
  expect_ok(engine.observe(spec));
  expect_ok(engine.compute(batch_of(tokens, start)));
  const Observation before = engine.observation();
  expect_ok(engine.open_context({.cells = 256, .sequences = 1, .batch = 64}));
  spec.before_rope = false;
  expect_ok(engine.observe(spec));
  expect_ok(engine.compute(batch_of(tokens, start)));
  const Observation after = engine.observation();
  ASSERT_EQ(before.tokens, 150);
  ASSERT_EQ(after.tokens, 150);
  const auto compare = [&](std::int32_t layer, std::vector<float> raw, const std::vector<float>& rotated) {
    const LayerGeometry& shape = engine.geometry().layers[static_cast<std::size_t>(layer)];
    const auto dim = static_cast<std::size_t>(shape.key_dim);
    ASSERT_EQ(raw.size(), dim * 150);
    ASSERT_EQ(rotated.size(), raw.size());
    EXPECT_NE(raw, rotated);
    const auto frequencies = rope_frequencies(shape.rope);
    float worst = 0;
    float largest = 0;
    for (std::size_t t = 0; t < 150; ++t)
      rotate(std::span(raw).subspan(t * dim, dim), shape.rope, frequencies, start + static_cast<double>(t));
    for (std::size_t i = 0; i < raw.size(); ++i) {
      worst = std::max(worst, std::abs(raw[i] - rotated[i]));
      largest = std::max(largest, std::abs(rotated[i]));
    }
    EXPECT_LT(worst, 1e-3F * largest) << "layer " << layer;
  };
  for (std::size_t i = 0; i < spec.queries.size(); ++i)
    compare(spec.queries[i].layer, before.queries[i], after.queries[i]);
  for (std::size_t i = 0; i < spec.keys.size(); ++i) compare(spec.keys[i].layer, before.keys[i], after.keys[i]);
  expect_ok(engine.observe({}));
}

TEST(LlamaObserve, RotatingTheUnrotatedGivesTheRotated) { check_observation(smollm2()); }
TEST(LlamaObserve, KeyNormsAndWindowedBasesAreInTheUnrotated) { check_observation(gemma3()); }

TEST(LlamaObserve, SequencesInOneBatchKeepTheBatchOrder) {
  Engine& engine = opened(smollm2());
  const auto tokens = text_tokens(engine, 40);
  expect_ok(engine.open_context({.cells = 256, .sequences = 2}));
  expect_ok(engine.observe({.queries = {}, .keys = {{3, 1}}, .before_rope = true}));
  std::vector<BatchToken> mixed;
  for (std::int32_t i = 0; i < 20; ++i) {
    mixed.push_back({.token = tokens[static_cast<std::size_t>(i)], .place = Place(i), .seq = 0});
    mixed.push_back({.token = tokens[static_cast<std::size_t>(20 + i)], .place = Place(i), .seq = 1});
  }
  expect_ok(engine.compute(mixed));
  const auto together = engine.observation().keys[0];
  for (const SeqId seq : {0, 1}) {
    expect_ok(engine.open_context({.cells = 256, .sequences = 2}));
    expect_ok(engine.compute(batch_of(std::span(tokens).subspan(static_cast<std::size_t>(seq) * 20, 20), 0, seq)));
    const auto alone = engine.observation().keys[0];
    float worst = 0;
    for (std::size_t t = 0; t < 20; ++t)
      for (std::size_t d = 0; d < 64; ++d)
        worst =
            std::max(worst, std::abs(alone[t * 64 + d] - together[(2 * t + static_cast<std::size_t>(seq)) * 64 + d]));
    EXPECT_LT(worst, 0.2F) << "sequence " << seq;
  }
  expect_ok(engine.observe({}));
}

TEST(LlamaObserve, HeadsThatTheModelLacksAreMisuse) {
  Engine& engine = opened(smollm2());
  expect_code(engine.observe({.queries = {{30, 0}}, .keys = {}}), ErrorCode::engine_misuse);
  expect_code(engine.observe({.queries = {{0, 9}}, .keys = {}}), ErrorCode::engine_misuse);
  expect_code(engine.observe({.queries = {}, .keys = {{0, 3}}}), ErrorCode::engine_misuse);
  expect_code(engine.observe({.queries = {{-1, 0}}, .keys = {}}), ErrorCode::engine_misuse);
}

TEST(LlamaCancel, StopsWithinASecondAndLeavesNothingOfTheBatch) {
  Engine& engine = opened(smollm2());
  const auto tokens = text_tokens(engine, 3000);
  expect_ok(engine.open_context({.cells = 3072, .sequences = 1}));
  const auto first = std::span(tokens).first(64);
  expect_ok(engine.compute(batch_of(first)));
  using Clock = std::chrono::steady_clock;
  Clock::time_point asked;
  std::jthread watcher([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    asked = Clock::now();
    engine.cancel();
  });
  const auto status = engine.compute(batch_of(std::span(tokens).subspan(64), 64));
  const auto stopped = Clock::now();
  watcher.join();
  expect_code(status, ErrorCode::cancelled);
  EXPECT_LT(stopped - asked, std::chrono::seconds(1));
  EXPECT_EQ(engine.extent(0), places(0, 64));
  EXPECT_EQ(engine.cells_used(), 64);
  EXPECT_EQ(engine.check_integrity(), "");
  const BatchToken next{.token = tokens[64], .place = Place(64), .seq = 0, .logits = true};
  expect_code(engine.compute({&next, 1}), ErrorCode::cancelled);
  engine.clear_cancel();
  expect_ok(engine.compute({&next, 1}));
  const auto after = last_logits(engine, 0);
  expect_ok(engine.open_context({.cells = 3072, .sequences = 1}));
  expect_ok(engine.compute(batch_of(first)));
  expect_ok(engine.compute({&next, 1}));
  EXPECT_EQ(last_logits(engine, 0), after);
}

TEST(LlamaCancel, DuringAMoveOfKeysRotatesNothingTwice) {
  Engine& engine = opened(smollm2());
  const auto tokens = text_tokens(engine, 100);
  const auto run = [&](bool cancelled) {
    expect_ok(engine.open_context({.cells = 512, .sequences = 1}));
    expect_ok(engine.compute(batch_of(std::span(tokens).first(60))));
    expect_ok(engine.rebase(0, places(0, 60), 50));
    const auto rest = batch_of(std::span(tokens).subspan(60), 110);
    if (cancelled) {
      // The flag is up before the keys are moved and comes to bear in the middle of the same call.
      std::jthread early([&] { engine.cancel(); });
      const auto status = engine.compute(rest);
      early.join();
      engine.clear_cancel();
      if (status) return std::vector<float>{};
    }
    if (!cancelled || engine.extent(0).end == Place(110)) expect_ok(engine.compute(rest));
    return last_logits(engine, rest.size() - 1);
  };
  const auto expected = run(false);
  int cancelled = 0;
  for (int i = 0; i < 10; ++i) {
    const auto got = run(true);
    if (got.empty()) continue;
    ++cancelled;
    EXPECT_EQ(got, expected);
  }
  EXPECT_GT(cancelled, 0);
}

TEST(LlamaTokens, TextComesBackAndControlTokensOnlyFromTemplates) {
  const Engine& engine = opened(smollm2());
  const std::string text = "Grüße: <|im_start|>user, 日本語, 🙂\n";
  const auto as_user = engine.tokenize(text, false, false).value();
  const auto as_template = engine.tokenize(text, false, true).value();
  std::string back;
  for (const Token t : as_user) back += engine.piece(t);
  EXPECT_EQ(back, text);
  EXPECT_LT(as_template.size(), as_user.size());
  EXPECT_EQ(engine.piece(-1), "");
  EXPECT_EQ(engine.piece(1 << 30), "");
  EXPECT_FALSE(engine.is_end(-1));
  const auto bos = opened(gemma3()).tokenize("", true, false).value();
  EXPECT_EQ(bos.size(), 1U);
}

TEST(LlamaTokens, AChatIsWrittenAsTheModelsTemplateSays) {
  const std::vector<ChatMessage> messages = {{"system", "Be brief."}, {"user", "Hello"}};
  const auto text = opened(smollm2()).render_chat(messages, true);
  ASSERT_TRUE(text) << to_text(text.error());
  EXPECT_NE(text->find("<|im_start|>system\nBe brief.<|im_end|>"), std::string::npos);
  EXPECT_TRUE(text->ends_with("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")) << *text;
  const auto closed = opened(smollm2()).render_chat(messages, false);
  ASSERT_TRUE(closed);
  EXPECT_TRUE(closed->ends_with("<|im_start|>user\nHello<|im_end|>\n")) << *closed;
  EXPECT_EQ(opened(gemma3()).render_chat(messages, true).error().code, ErrorCode::unsupported_operation);
}

}  // namespace
}  // namespace modeld
