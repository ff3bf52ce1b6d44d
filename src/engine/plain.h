// An engine's own library without modeld, for comparisons: one dense context that is filled and decoded from.
//
// Ownership: owns its model and context. Thread: one.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "stream/tokens.h"

namespace modeld {

class PlainModel {
 public:
  PlainModel() = default;
  PlainModel(const PlainModel&) = delete;
  PlainModel& operator=(const PlainModel&) = delete;
  virtual ~PlainModel() = default;

  /// A fresh, empty context, with the settings that the Engine uses. `threads` 0: as the Engine chooses.
  /// Errors: device_budget_exceeded.
  virtual Status open_context(std::int32_t cells, std::int32_t threads) = 0;
  virtual void close_context() = 0;
  /// Computes tokens behind what is there, in passes of 512, with the logits of the last one. Errors: engine_failed.
  virtual Status compute(std::span<const Token> tokens) = 0;
  /// The likeliest token after the last one computed. REQUIRES a compute() before.
  virtual Token greedy() const = 0;
  virtual std::span<const float> logits() const = 0;
};

}  // namespace modeld
