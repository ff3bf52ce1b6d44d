// The scripted engine: a tiny real attention model with hand-made weights, for fast and deterministic tests.
//
// What:      two layers, two query heads over one KV head each. Layer 0 looks one and two places back (by RoPE alone);
//            layer 1 looks for an earlier place where the same two tokens stood and copies what came next. So a text
//            that holds "the code of Paris is 4711", followed by "code of Paris is", continues with " 4711" exactly if
//            the passage is resident: recall can be tested in milliseconds, bit for bit.
// Contract:  engine.h in full. Logits do not depend on cells, batch boundaries or other sequences: all equalities are
// exact.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include "engine/engine.h"
#include "engine/scripted/lexicon.h"

namespace modeld {

struct ScriptedOptions {
  /// Another seed gives another model: other embeddings, another identity.
  std::uint64_t seed = 1;
  std::int32_t trained_window = 8192;
  RopeStyle rope = RopeStyle::neox;
  /// Attended tokens per layer; 0: all.
  std::array<std::int32_t, 2> windows = {0, 0};
  bool adds_bos = false;
  /// ChatML; without it render_chat() answers unsupported_operation.
  bool chat_template = true;
  /// Token ids and their words; engines that share it agree on every id. Null: one of its own.
  std::shared_ptr<Lexicon> lexicon = nullptr;
  /// Bytes that the make-believe device has for weights, KV and compute; 0: no limit.
  std::int64_t device_bytes = 0;
  /// The compute() call that fails half-way and poisons the context, counted from 1 over the engine's life; 0: none.
  std::int64_t fail_at_compute = 0;
  /// Time that each computed token takes, for tests of cancelling and of predictions.
  std::chrono::microseconds token_time{0};
};

/// Never null.
std::unique_ptr<Engine> open_scripted(ScriptedOptions options = {});

}  // namespace modeld
