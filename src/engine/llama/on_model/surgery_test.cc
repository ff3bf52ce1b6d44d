// Moving KV on real models: pristine copies, windows, damaged payloads, misuse.
#include <gtest/gtest.h>

#include <cstring>

#include "base/digest.h"
#include "engine/llama/memory.h"
#include "engine/llama/on_model/test_model.h"

namespace modeld {
namespace {

using namespace on_model;

/// Logits of one more token at `place` of sequence 0; the token is removed again.
std::vector<float> probe(Engine& engine, Token token, std::int32_t place) {
  const BatchToken next{.token = token, .place = Place(place), .seq = 0, .logits = true};
  const auto status = engine.compute({&next, 1});
  EXPECT_TRUE(status) << to_text(status.error());
  auto row = last_logits(engine, 0);
  EXPECT_TRUE(engine.evict(0, places(place, place + 1)));
  return row;
}

void check_round_trip(const std::filesystem::path& path, KvType type, std::int32_t count) {
  Engine& engine = opened(path);
  expect_ok(engine.open_context({.cells = 768, .sequences = 1, .kv_type = type}));
  const auto tokens = text_tokens(engine, static_cast<std::size_t>(count));
  expect_ok(engine.compute(batch_of(tokens)));
  const auto expected = probe(engine, tokens[0], count);
  for (const auto range :
       {places(count / 10, count / 10 + 64), places(0, 64), places(count - 60, count), places(10, count - 1)}) {
    const auto payload = engine.export_range(0, range);
    ASSERT_TRUE(payload) << to_text(payload.error());
    expect_ok(engine.evict(0, range));
    EXPECT_EQ(engine.cells_used(), count - range.size());
    EXPECT_EQ(engine.check_integrity(), "");
    expect_ok(engine.admit(0, *payload, range.begin));
    EXPECT_EQ(engine.check_integrity(), "");
    EXPECT_EQ(probe(engine, tokens[0], count), expected) << path << " " << range.begin.get();
    const auto again = engine.export_range(0, range);
    ASSERT_TRUE(again) << to_text(again.error());
    EXPECT_EQ(again->data, payload->data);
  }
}

TEST(LlamaSurgery, OutAndInAtTheSamePlaceIsBitEqual) { check_round_trip(smollm2(), KvType::f16, 200); }
TEST(LlamaSurgery, OutAndInAtTheSamePlaceIsBitEqualForQuantisedKv) { check_round_trip(smollm2(), KvType::q8_0, 200); }
TEST(LlamaSurgery, OutAndInAtTheSamePlaceIsBitEqualWithWindowedLayers) { check_round_trip(gemma3(), KvType::f16, 700); }

TEST(LlamaWindow, ABlockFarBehindTheWindowIsStillWhole) {
  Engine& engine = opened(gemma3());
  expect_ok(engine.open_context({.cells = 1024, .sequences = 1}));
  const auto tokens = text_tokens(engine, 1000);
  // One right after it was computed, and the same one when the window has long left it.
  expect_ok(engine.compute(batch_of(std::span(tokens).first(200))));
  const auto early = engine.export_range(0, places(64, 192));
  ASSERT_TRUE(early) << to_text(early.error());
  for (std::int32_t at = 200; at < 1000; at += 200)
    expect_ok(engine.compute(batch_of(std::span(tokens).subspan(static_cast<std::size_t>(at), 200), at)));
  const auto late = engine.export_range(0, places(64, 192));
  ASSERT_TRUE(late) << to_text(late.error());
  EXPECT_EQ(late->data, early->data);
  const std::int64_t per_token = engine.geometry().kv_bytes_per_token(KvType::f16);
  EXPECT_GT(static_cast<std::int64_t>(late->data.size()), 128 * per_token);
  EXPECT_EQ(engine.cells_used(), 1000);
  EXPECT_EQ(engine.check_integrity(), "");
}

TEST(LlamaWindow, CellsBehindTheWindowAreNeverGivenAway) {
  Engine& engine = opened(gemma3());
  expect_ok(engine.open_context({.cells = 768, .sequences = 1}));
  const auto tokens = text_tokens(engine, 800);
  expect_ok(engine.compute(batch_of(std::span(tokens).first(768))));
  const BatchToken next{.token = tokens[0], .place = Place(768), .seq = 0};
  expect_code(engine.compute({&next, 1}), ErrorCode::engine_no_cells);
  EXPECT_EQ(engine.extent(0), places(0, 768));
  EXPECT_EQ(engine.check_integrity(), "");
  expect_ok(engine.evict(0, places(10, 20)));
  expect_ok(engine.compute({&next, 1}));
  EXPECT_EQ(engine.check_integrity(), "");
}

TEST(LlamaSurgery, ABlockAtAnotherPlaceIsAsGoodAsComputedThere) {
  for (const auto& path : {smollm2(), gemma3()}) {
    Engine& engine = opened(path);
    const auto tokens = text_tokens(engine, 400);
    expect_ok(engine.open_context({.cells = 1024, .sequences = 1}));
    expect_ok(engine.compute(batch_of(std::span(tokens).first(256), 300)));
    const auto there = probe(engine, tokens[300], 556);
    expect_ok(engine.open_context({.cells = 1024, .sequences = 1}));
    expect_ok(engine.compute(batch_of(std::span(tokens).first(256), 0)));
    const auto payload = engine.export_range(0, places(0, 256));
    ASSERT_TRUE(payload);
    expect_ok(engine.evict(0, places(0, 256)));
    expect_ok(engine.admit(0, *payload, Place(300)));
    EXPECT_LT(divergence(there, probe(engine, tokens[300], 556)), 1e-2) << path;
    EXPECT_EQ(engine.export_range(0, places(300, 310)).error().code, ErrorCode::engine_misuse);
    EXPECT_EQ(engine.check_integrity(), "");
  }
}

TEST(LlamaSurgery, MovingOthersLeavesAPristineBlockPristine) {
  for (const KvType type : {KvType::f16, KvType::q8_0, KvType::q4_0}) {
    Engine& engine = opened(smollm2());
    const auto tokens = text_tokens(engine, 120);
    expect_ok(engine.open_context({.cells = 512, .sequences = 1, .kv_type = type}));
    expect_ok(engine.compute(batch_of(std::span(tokens).first(100))));
    const auto before = engine.export_range(0, places(0, 50));
    ASSERT_TRUE(before);
    for (int i = 0; i < 3; ++i) {
      expect_ok(engine.rebase(0, places(50, 300), 7));
      probe(engine, tokens[0], engine.extent(0).end.get());
    }
    const auto after = engine.export_range(0, places(0, 50));
    ASSERT_TRUE(after);
    EXPECT_EQ(before->data, after->data) << to_text(type);
  }
}

TEST(LlamaSurgery, SharedPlacesAreTheSameCellsAndDoNotMove) {
  for (const auto& path : {smollm2(), gemma3()}) {
    Engine& engine = opened(path);
    const auto tokens = text_tokens(engine, 300);
    expect_ok(engine.open_context({.cells = 1024, .sequences = 3}));
    expect_ok(engine.compute(batch_of(std::span(tokens).first(256))));
    expect_ok(engine.share(0, 2, places(0, 256)));
    EXPECT_EQ(engine.cells_used(), 256);
    EXPECT_EQ(engine.check_integrity(), "");
    const auto expected = probe(engine, tokens[256], 256);
    const BatchToken next{.token = tokens[256], .place = Place(256), .seq = 2, .logits = true};
    expect_ok(engine.compute({&next, 1}));
    EXPECT_EQ(last_logits(engine, 0), expected);
    expect_code(engine.rebase(2, places(0, 256), 10), ErrorCode::engine_misuse);
    expect_code(engine.share(0, 2, places(0, 256)), ErrorCode::engine_misuse);
    expect_ok(engine.evict(0, places(0, 1000)));
    EXPECT_EQ(engine.cells_used(), 257);
    EXPECT_EQ(engine.check_integrity(), "");
    expect_ok(engine.rebase(2, places(0, 257), 10));
    EXPECT_EQ(engine.extent(2), places(10, 267));
    EXPECT_EQ(engine.check_integrity(), "");
  }
}

TEST(LlamaPayload, ADamagedPayloadIsRefusedAndTheSequenceStaysAsItWas) {
  Engine& engine = opened(smollm2());
  const auto tokens = text_tokens(engine, 300);
  expect_ok(engine.open_context({.cells = 512, .sequences = 1}));
  expect_ok(engine.compute(batch_of(std::span(tokens).first(256))));
  const auto expected = probe(engine, tokens[256], 256);
  const auto good = engine.export_range(0, places(32, 96));
  ASSERT_TRUE(good);
  const auto refused = [&](KvPayload bad) {
    expect_code(engine.admit(0, bad, Place(400)), ErrorCode::payload_invalid);
    EXPECT_EQ(engine.extent(0), places(0, 256));
    EXPECT_EQ(engine.check_integrity(), "");
  };
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{17}, std::size_t{60}, std::size_t{90},
                               std::size_t{200}, good->data.size() / 2, good->data.size() - 1}) {
    KvPayload bad = *good;
    bad.data[at] ^= std::byte{0x40};
    refused(std::move(bad));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{63}, good->data.size() / 2, good->data.size() + 1}) {
    KvPayload bad = *good;
    bad.data.resize(size);
    refused(std::move(bad));
  }
  KvPayload elsewhere = *good;
  elsewhere.places = places(33, 97);
  refused(std::move(elsewhere));
  KvPayload other_type = *good;
  other_type.kv_type = KvType::q8_0;
  refused(std::move(other_type));
  EXPECT_EQ(probe(engine, tokens[256], 256), expected);
}

TEST(LlamaPayload, AnotherModelsPayloadIsRefused) {
  Engine& gemma = opened(gemma3());
  expect_ok(gemma.open_context({.cells = 256, .sequences = 1}));
  expect_ok(gemma.compute(batch_of(text_tokens(gemma, 32))));
  const auto payload = gemma.export_range(0, places(0, 32));
  ASSERT_TRUE(payload);
  Engine& engine = opened(smollm2());
  expect_ok(engine.open_context({.cells = 256, .sequences = 1}));
  expect_code(engine.admit(0, *payload, Place(0)), ErrorCode::payload_invalid);
  EXPECT_EQ(engine.cells_used(), 0);
}

TEST(LlamaMisuse, EveryGuardedCallIsAnErrorValueAndChangesNothing) {
  Engine& engine = opened(smollm2());
  engine.close_context();
  EXPECT_EQ(engine.context().cells, 0);
  const BatchToken zero{.token = 1, .place = Place(0), .seq = 0};
  expect_code(engine.compute({&zero, 1}), ErrorCode::engine_misuse);
  expect_ok(engine.open_context({.cells = 300, .sequences = 2}));
  const auto tokens = text_tokens(engine, 301);
  expect_ok(engine.compute(batch_of(std::span(tokens).first(100))));
  const auto misuse = [&](Status status) {
    expect_code(status, ErrorCode::engine_misuse);
    EXPECT_EQ(engine.extent(0), places(0, 100));
    EXPECT_EQ(engine.check_integrity(), "");
  };
  for (const SeqId seq : {-1, 2, 3, 9999}) {
    misuse(engine.compute(batch_of(std::span(tokens).first(1), 0, seq)));
    misuse(engine.evict(seq, places(0, 1)));
    misuse(engine.share(0, seq, places(0, 1)));
    misuse(engine.rebase(seq, places(0, 1), 1));
  }
  misuse(engine.compute(batch_of(std::span(tokens).first(1), 105)));
  misuse(engine.compute(batch_of(std::span(tokens).first(1), 50)));
  misuse(engine.compute({}));
  const BatchToken foreign{.token = 1 << 30, .place = Place(100), .seq = 0};
  misuse(engine.compute({&foreign, 1}));
  misuse(engine.rebase(0, places(0, 100), -1));
  EXPECT_EQ(engine.export_range(0, places(90, 101)).error().code, ErrorCode::engine_misuse);
  expect_code(engine.compute(batch_of(std::span(tokens).first(201), 100)), ErrorCode::engine_no_cells);
  expect_code(engine.open_context({.cells = 0}), ErrorCode::bad_argument);
  expect_code(engine.open_context({.cells = 256, .sequences = 1000}), ErrorCode::bad_argument);
  expect_code(engine.open_context({.cells = 2000000000}), ErrorCode::device_budget_exceeded);
}

TEST(LlamaMemory, ComputeBuffersTakeNoMoreThanForeseenAndNotFarLess) {
  Engine& engine = opened(smollm2());
  for (const std::int32_t cells : {1024, 2560, 8192}) {
    for (const std::int32_t sequences : {1, 5}) {
      expect_ok(engine.open_context({.cells = cells, .sequences = sequences}));
      const std::int64_t foreseen =
          foreseen_compute_bytes(engine.geometry(), engine.context().cells, engine.context().batch);
      EXPECT_LE(engine.memory().compute, foreseen) << cells << " cells, " << sequences << " sequences";
      EXPECT_GE(engine.memory().compute * 2, foreseen) << cells << " cells, " << sequences << " sequences";
    }
  }
}

TEST(LlamaMemory, TheBytesAreThoseOfTheGeometry) {
  Engine& engine = opened(smollm2());
  expect_ok(engine.open_context({.cells = 1000, .sequences = 1}));
  EXPECT_EQ(engine.context().cells, 1000);
  const EngineMemory memory = engine.memory();
  // The engine rounds 1,000 cells up to 1,024 and says so in bytes.
  EXPECT_EQ(memory.kv, 1024 * engine.geometry().kv_bytes_per_token(KvType::f16));
  EXPECT_GT(memory.compute, 0);
  EXPECT_GE(memory.weights, static_cast<std::int64_t>(engine.geometry().weight_bytes));
}

}  // namespace
}  // namespace modeld
