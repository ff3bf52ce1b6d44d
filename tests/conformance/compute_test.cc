// Computing: places, batches, repeatability, cancelling, running out of cells, counting.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "conformance/fixture.h"

namespace modeld {
namespace {

using Clock = std::chrono::steady_clock;

TEST_P(Rules, SamePromptTwiceGivesTheSameBits) {
  const auto prompt = story(90);
  const Logits first = feed(prompt);
  open();
  EXPECT_EQ(feed(prompt), first);
}

TEST_P(Rules, SameBatchBoundariesGiveTheSameBits) {
  const auto prompt = story(90);
  open(512, 4, 32);
  const Logits whole = feed(prompt);
  open(512, 4, 32);
  feed(std::span(prompt).first(32));
  feed(std::span(prompt).subspan(32, 32));
  EXPECT_EQ(feed(std::span(prompt).subspan(64)), whole) << "a larger batch must be split at multiples of the spec's";
}

TEST_P(KvRules, DecodingEqualsOneBatch) {
  const auto prompt = story(90);
  const Logits whole = feed(prompt);
  open();
  feed(std::span(prompt).first(70));
  expect_near_computed(whole, decode(std::span(prompt).subspan(70)), "70 in one batch, 20 decoded");
  expect_extent(0, 0, 90);
}

TEST_P(KvRules, AnEmptySequenceMayStartAtAnyPlace) {
  const auto prompt = story(60);
  const Logits at_zero = feed(prompt, 0, 0);
  const Logits elsewhere = feed(prompt, 1, 173);
  expect_extent(1, 173, 233);
  expect_near_computed(at_zero, elsewhere, "the same prompt at place 173");
}

TEST_P(Rules, LogitsComeForTheTokensThatAskedAndNoOthers) {
  const auto prompt = story(20);
  auto batch = batch_of(prompt, 0, 0);
  batch[4].logits = batch[19].logits = true;
  must(engine().compute(batch));
  const auto vocabulary = static_cast<std::size_t>(engine().geometry().vocabulary);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(engine().logits(i).size(), batch[i].logits ? vocabulary : 0U) << i;
  }
  EXPECT_TRUE(engine().logits(20).empty());
  const Logits fourth(engine().logits(4).begin(), engine().logits(4).end());
  open();
  expect_near_computed(fourth, feed(std::span(prompt).first(5)), "logits inside a batch");
}

TEST_P(Rules, CancelStopsWithinASecondAndLeavesTheSequenceUsable) {
  use(GetParam().slow_engine());
  const auto count = static_cast<std::size_t>(GetParam().slow_tokens);
  open(GetParam().slow_tokens + 100);
  const auto start = story(40);
  const auto probe = std::span(start).first(3);
  const Logits wanted = feed(start);
  const auto held = engine().cells_used();
  const auto batch = batch_of(story(count), 0, 40);
  Clock::time_point asked;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    asked = Clock::now();
    engine().cancel();
  });
  const Status status = engine().compute(batch);
  const auto stopped = Clock::now();
  other.join();
  ASSERT_FALSE(status) << "the computation ended before it was cancelled; raise slow_tokens";
  EXPECT_EQ(code_name(status.error().code), "cancelled");
  EXPECT_LT(std::chrono::duration<double>(stopped - asked).count(), 1.0);
  expect_extent(0, 0, 40);
  EXPECT_EQ(engine().cells_used(), held);
  must_refuse(ErrorCode::cancelled, "compute before clear_cancel",
              [&] { return engine().compute(batch_of(probe, 0, 40)); });
  engine().clear_cancel();
  const Logits after = feed(probe);
  open();
  feed(start);
  expect_near(feed(probe), after, "after a cancelled batch");
  open();
  EXPECT_EQ(feed(start), wanted);
}

TEST_P(Rules, NoCellsLeftIsAnErrorThatLeavesEverythingIntact) {
  const auto prompt = story(64);
  const auto payload = [&] {
    feed(std::span(prompt).first(24));
    return take_out(0, 0, 24);
  }();
  open(256, 2, 64);
  std::int32_t filled = 0;
  while (filled + 24 <= engine().context().cells - 10) {
    feed(std::span(prompt).first(24));
    filled += 24;
  }
  const auto left = static_cast<std::size_t>(engine().context().cells - filled);
  ASSERT_LT(left, 64U);
  EXPECT_EQ(engine().cells_used(), filled);
  const auto too_many = batch_of(std::span(prompt).first(left + 1), 0, filled);
  must_refuse(ErrorCode::engine_no_cells, "a batch beyond the free cells", [&] { return engine().compute(too_many); });
  if (left < 24) {
    must_refuse(ErrorCode::engine_no_cells, "a payload beyond the free cells",
                [&] { return engine().admit(1, payload, Place(0)); });
  }
  feed(std::span(prompt).first(left));
  must_refuse(ErrorCode::engine_no_cells, "a payload into a full context",
              [&] { return engine().admit(1, payload, Place(0)); });
  evict(0, 0, 24);
  admit(1, payload, 0);
  EXPECT_EQ(engine().cells_used(), engine().context().cells);
}

TEST_P(Rules, ABatchLargerThanTheContextIsRefused) {
  open(256, 1, 64);
  const auto batch = batch_of(story(static_cast<std::size_t>(engine().context().cells) + 1), 0, 0);
  must_refuse(ErrorCode::engine_no_cells, "more tokens than cells", [&] { return engine().compute(batch); });
}

TEST_P(KvRules, MemoryAndCellsAreCounted) {
  open(512, 4, 64);
  const std::int64_t expected =
      engine().geometry().kv_bytes_per_token(GetParam().kv_type) * std::int64_t{engine().context().cells};
  const EngineMemory memory = engine().memory();
  EXPECT_GE(memory.kv, expected);
  EXPECT_LE(static_cast<double>(memory.kv), static_cast<double>(expected) * 1.02);
  EXPECT_GT(memory.weights, 0);
  EXPECT_EQ(engine().cells_used(), 0);
  const auto prompt = story(50);
  feed(prompt);
  EXPECT_EQ(engine().cells_used(), 50);
  must(engine().share(0, 1, places(0, 30)));
  EXPECT_EQ(engine().cells_used(), 50) << "a shared cell counts once";
  evict(0, 0, 30);
  EXPECT_EQ(engine().cells_used(), 50) << "sequence 1 still holds them";
  evict(1, 0, 10);
  EXPECT_EQ(engine().cells_used(), 40);
  evict(0, 30, 50);
  evict(1, 0, 1000);
  EXPECT_EQ(engine().cells_used(), 0);
  EXPECT_EQ(engine().memory().kv, memory.kv);
}

TEST_P(KvRules, TheContextSaysWhatItIsAndTheIdentityNamesItsKvType) {
  const ContextSpec& spec = engine().context();
  EXPECT_GE(spec.cells, 512);
  EXPECT_EQ(spec.kv_type, GetParam().kv_type);
  EXPECT_GT(spec.threads, 0);
  EXPECT_EQ(engine().identity().kv_type, to_text(GetParam().kv_type));
  engine().close_context();
  EXPECT_EQ(engine().context().cells, 0);
  EXPECT_EQ(engine().identity().kv_type, "");
}

TEST_P(Rules, TokensRoundTripAndTemplatesAreOnlyParsedWhereAsked) {
  const std::string text = "Line one: 42 apples,\n\tthen \"two\" more.";
  const auto plain = engine().tokenize(text, false, false);
  ASSERT_TRUE(plain);
  EXPECT_EQ(this->text(*plain), text);
  const std::vector<ChatMessage> chat = {{"user", "Where is the harbour?"}};
  const auto rendered = engine().render_chat(chat, true);
  if (!engine().geometry().has_chat_template) {
    ASSERT_FALSE(rendered);
    EXPECT_EQ(code_name(rendered.error().code), "unsupported_operation");
    return;
  }
  ASSERT_TRUE(rendered);
  EXPECT_NE(rendered->find("Where is the harbour?"), std::string::npos);
  const auto parsed = engine().tokenize(*rendered, false, true).value();
  const auto typed = engine().tokenize(*rendered, false, false).value();
  EXPECT_LT(parsed.size(), typed.size()) << "what a user writes must not become control tokens";
}

}  // namespace
}  // namespace modeld
