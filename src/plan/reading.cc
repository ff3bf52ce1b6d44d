#include "plan/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace modeld {
namespace {

/// Tokens of one pass of the engine that ingest tries to fill.
constexpr std::int64_t kBatchTokens = 512;

/// All that shape_turn() adds up, in 64 bits: the arguments are a user's.
struct Needs {
  const ReadingPolicy& policy;
  std::int64_t question;
  std::int64_t reserve;
  std::int64_t block_max;

  [[nodiscard]] std::int64_t lane() const { return policy.run_up + block_max; }
  /// The probe pass is removed before the blocks come in, so the question counts once.
  [[nodiscard]] std::int64_t answer(std::int64_t recent, std::int64_t blocks) const {
    return policy.sinks + recent + blocks * block_max + question + reserve;
  }
  /// The least that ingest can work with: one lane, or one block behind the window.
  [[nodiscard]] std::int64_t ingest_min(std::int64_t recent) const {
    return policy.sinks + recent + (policy.origin == KvOrigin::isolated ? lane() : block_max);
  }
  /// What ingest is fastest with.
  [[nodiscard]] std::int64_t ingest_full(std::int64_t recent, std::int64_t hot) const {
    if (policy.origin == KvOrigin::streamed) {
      return std::min(hot, policy.sinks + std::max<std::int64_t>(recent, policy.stream_window) + kBatchTokens);
    }
    const std::int64_t wanted = (kBatchTokens + lane() - 1) / lane();
    const std::int64_t fitting = (hot - policy.sinks - recent) / lane();
    return policy.sinks + recent + std::clamp<std::int64_t>(fitting, 1, wanted) * lane();
  }
  [[nodiscard]] std::int64_t cells_min(std::int64_t recent, std::int64_t blocks) const {
    return std::max(answer(recent, blocks), ingest_min(recent));
  }
};

Status check_arguments(const ReadingPolicy& policy, std::int32_t hot, std::int32_t question, std::int32_t reserve,
                       std::int32_t block_max) {
  if (policy.sinks < 0 || policy.recent < 0 || policy.blocks < 0 || policy.run_up < 0 || policy.stream_window < 0) {
    return fail(ErrorCode::bad_argument, "A reading policy cannot have negative sizes. Calibrate the model again.");
  }
  if (hot < 0 || question < 0 || reserve < 0 || block_max <= 0) {
    return fail(ErrorCode::bad_argument, "Hot budget, question and answer cannot have a negative number of tokens.",
                {{"hot_tokens", hot}, {"question_tokens", question}, {"reserve_tokens", reserve}});
  }
  return {};
}

double share_of(const PolicyScore& score) {
  return score.asked == 0 ? 0.0 : static_cast<double>(score.right) / static_cast<double>(score.asked);
}
double variance_of(const PolicyScore& score) {
  const double share = share_of(score);
  return share * (1.0 - share) / std::max(1.0, static_cast<double>(score.asked));
}

}  // namespace

std::size_t choose_policy(std::span<const PolicyScore> scores, std::size_t safe) {
  const auto best = std::max_element(scores.begin(), scores.end(), [](const PolicyScore& a, const PolicyScore& b) {
    return share_of(a) < share_of(b);
  });
  const double ahead = share_of(*best) - share_of(scores[safe]);
  const double error = std::sqrt(variance_of(*best) + variance_of(scores[safe]));
  return ahead > error ? static_cast<std::size_t>(best - scores.begin()) : safe;
}

Result<TurnShape> shape_turn(const ReadingPolicy& policy, std::int32_t hot_tokens, std::int32_t question_tokens,
                             std::int32_t reserve_tokens, std::int32_t block_tokens_max) {
  MODELD_TRY_VOID(check_arguments(policy, hot_tokens, question_tokens, reserve_tokens, block_tokens_max));
  const std::int64_t hot = hot_tokens;
  if (question_tokens > hot / 2) {
    return fail(ErrorCode::question_too_long,
                fmt::format("The question has {} tokens; with a hot set of {} tokens it may have {}. Shorten it, give "
                            "long text as a file instead, or choose a larger hot set.",
                            question_tokens, hot, hot / 2),
                {{"question_tokens", question_tokens}, {"question_tokens_max", hot / 2}, {"hot_tokens", hot}});
  }
  const Needs needs{policy, question_tokens, reserve_tokens, block_tokens_max};
  const std::int64_t recent_min = std::min(policy.recent, block_tokens_max);
  const std::int64_t blocks_min = std::min(policy.blocks, 1);
  std::int64_t recent = policy.recent;
  std::int64_t blocks = policy.blocks;
  if (const std::int64_t over = needs.cells_min(recent, blocks) - hot; over > 0) {
    recent = std::max(recent_min, recent - over);
  }
  if (const std::int64_t over = needs.answer(recent, blocks) - hot; over > 0) {
    blocks = std::max(blocks_min, blocks - (over + block_tokens_max - 1) / block_tokens_max);
    // A whole block has gone for what may have been less: the recent window takes the rest back.
    recent = std::clamp(recent + hot - needs.cells_min(recent, blocks), recent_min, std::int64_t{policy.recent});
  }
  if (const std::int64_t least = needs.cells_min(recent, blocks); least > hot) {
    return fail(
        ErrorCode::hot_too_small,
        fmt::format("A hot set of {} tokens is too small: {} first tokens, a recent window of {}, {} passage of "
                    "{}, {} for the question and {} for the answer need {}. Choose a larger hot set or a shorter "
                    "answer.",
                    hot, policy.sinks, recent, blocks, block_tokens_max, question_tokens, reserve_tokens, least),
        {{"hot_tokens", hot},
         {"needed_tokens", least},
         {"question_tokens", question_tokens},
         {"reserve_tokens", reserve_tokens}});
  }
  const std::int64_t cells = std::max(needs.answer(recent, blocks), needs.ingest_full(recent, hot));
  TurnShape shape;
  shape.sinks = policy.sinks;
  shape.recent = static_cast<std::int32_t>(recent);
  shape.blocks = static_cast<std::int32_t>(blocks);
  shape.question = question_tokens;
  shape.reserve = reserve_tokens;
  shape.cells = static_cast<std::int32_t>(cells);
  return shape;
}

}  // namespace modeld
