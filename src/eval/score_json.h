// The scores of an evaluation for programs: one JSON object.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "eval/machine.h"
#include "eval/perplexity.h"
#include "eval/scores.h"

namespace modeld {

/// What the scores were measured with, beside the machine.
struct EvalSetting {
  std::string model;
  /// Of the model's file.
  std::string digest;
  std::int64_t trained_window = 0;
  std::int64_t tokens = 0;
  std::int64_t hot_tokens = 0;
  std::string kv_type;
  /// Empty: none.
  std::string embedder;
  std::uint64_t seed = 0;
  std::string report;
  /// Empty: none.
  std::string picture;
};

/// One object on one line, without a line end: the stamp, the setting, "tasks", an object of tasks, each an object of
/// modes, and "perplexity", an object of lengths, each an object of modes. What was not asked is absent; intervals are
/// [low, high]; recall's keys are its k.
std::string eval_json(std::span<const CellScores> scores, std::span<const PerplexityScore> perplexity,
                      const MachineStamp& stamp, const EvalSetting& setting);

}  // namespace modeld
