// The reading policy: how retrieved blocks are read. Measured per model by calibration; the default is safe until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/placement.h"
#include "stream/manifest.h"

namespace modeld {

struct ReadingPolicy {
  /// How long texts are ingested, and so which KV a retrieved block has.
  KvOrigin origin = KvOrigin::isolated;
  /// Window that is visible while prefilling in streamed ingest.
  std::int32_t stream_window = 512;
  /// Tokens computed before an isolated block and then dropped.
  std::int32_t run_up = 32;
  /// Blocks read for one question, at most.
  std::int32_t blocks = 4;
  BlockOrder order = BlockOrder::best_last;
  /// Sinks: the first tokens of the stream, always attended.
  std::int32_t sinks = 64;
  /// Recent window: the last tokens before the question, always attended.
  std::int32_t recent = 512;

  friend bool operator==(const ReadingPolicy&, const ReadingPolicy&) = default;
};

/// What a policy was measured to do.
struct PolicyScore {
  std::int32_t right = 0;
  std::int32_t asked = 0;
};
/// Which of several measured policies to use: the best, if it is better than `safe` by more than one standard error of
/// their difference (binomial, independent); else `safe`. A handful of questions must not talk a model out of what has
/// held for many. Of equals the first. REQUIRES safe < scores.size(), and 0 ≤ right ≤ asked.
std::size_t choose_policy(std::span<const PolicyScore> scores, std::size_t safe);

/// How a turn is divided: derived from the hot budget, the policy and the question.
struct TurnShape {
  std::int32_t sinks = 0;
  std::int32_t recent = 0;
  std::int32_t blocks = 0;
  std::int32_t question = 0;
  std::int32_t reserve = 0;
  /// Cells that the context needs for all of it, scratch for isolated lanes included.
  std::int32_t cells = 0;
};

/// Shrinks recent window first (to no less than one block), then the number of blocks (to no less than one), to fit
/// `hot_tokens`. Cells cover the answer (sinks, recent window, blocks, question, reserve) and the ingest: behind sinks
/// and recent window as many isolated lanes (run-up and a block) as fill a batch of 512 tokens and fit, at least one;
/// or the streamed window and a batch, as far as they fit. Pinned text is not part of a shape: the caller adds it.
/// Errors: question_too_long beyond half of hot_tokens, hot_too_small — both with what would fit; bad_argument for
/// negative sizes.
Result<TurnShape> shape_turn(const ReadingPolicy& policy, std::int32_t hot_tokens, std::int32_t question_tokens,
                             std::int32_t reserve_tokens, std::int32_t block_tokens_max);

}  // namespace modeld
