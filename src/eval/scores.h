// What a finished cell comes to: each share and ratio that is published, with its interval, worked out once for the
// table, the picture and the JSON.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/cells.h"
#include "eval/statistics.h"

namespace modeld {

/// Of `asked` answers as many as `right` are right; the interval is Wilson's.
struct Share {
  double right = 0.0;
  std::int64_t asked = 0;
  double value = 0.0;
  Interval interval;
};
Share share_of(double right, std::int64_t asked);

/// The k of recall@k.
inline constexpr std::array<std::int32_t, 4> kRecallAt = {1, 4, 8, 16};

struct CellScores {
  std::string task;
  std::string mode;
  std::int64_t tokens = 0;
  std::string parameters;
  Share forced;
  /// Nothing where none was asked freely.
  std::optional<Share> free;
  /// The score ÷ that of the task's "fresh" cell, over the questions that both have; nothing without such questions,
  /// and for the fresh cell itself.
  std::optional<Ratio> retention;
  /// At each of kRecallAt, and the share that was read; nothing where no block was ranked.
  std::optional<std::array<double, kRecallAt.size()>> recall;
  std::optional<double> read;
  /// mean_seconds().
  double question_seconds = 0.0;
  double prepare_seconds = 0.0;
};

/// Of a forced answer.
double mean_seconds(const Cell& cell);
/// One for each cell, in their order. `seed`: of the bootstrap.
std::vector<CellScores> scores_of(std::span<const Cell> cells, std::uint64_t seed);

}  // namespace modeld
