// What a sentence embedder can do: a small model of its own, beside the one that answers, that gives texts of like
// meaning vectors of like direction.
//
// Thread:  one; whoever owns the embedder calls it.
// Failure: engine_failed leaves it unusable: later calls fail as well.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace modeld {

class Embedder {
 public:
  Embedder() = default;
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;
  virtual ~Embedder() = default;

  /// Which model it is, for reports.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Numbers in a vector.
  [[nodiscard]] virtual std::int32_t dim() const = 0;
  /// A vector of length 1 for each text, in their order. Of a text longer than the model's window the beginning counts.
  virtual Result<std::vector<std::vector<float>>> embed(std::span<const std::string> texts) = 0;
};

}  // namespace modeld
