// What the conformance suite needs to know of an engine: how to get it, and how exact it can be.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace modeld {

struct EngineCase {
  /// Letters, digits and '_'.
  std::string name;
  KvType kv_type = KvType::f16;
  /// The engine, loaded on first use and kept; null after it reported why it cannot be had.
  std::function<Engine*()> engine;
  /// The same or another one whose compute() of `slow_tokens` tokens takes at least two seconds.
  std::function<Engine*()> slow_engine;
  std::int32_t slow_tokens = 2000;
  /// Kullback-Leibler divergence, in nats, that sums in another order and rounding to the KV type may cost.
  double bound = 1e-2;
  /// How far a single one of several rows may lie beyond `bound`, which their mean keeps: a row where the model is
  /// undecided turns on the rounding of a 4-bit KV.
  double single_row = 1.0;
  /// The same for computing anew in batches of another size or at other places: the noise of the model's own kernels.
  double computing_bound = 1e-2;
  /// Largest relative error of an observed vector against the same one computed under other places.
  double vector_bound = 2e-2;
  /// Sentences of padding about the planted passage.
  int padding_sentences = 12;
};

inline void PrintTo(const EngineCase& c, std::ostream* out) { *out << c.name; }

/// Cases that all rules run on, and cases for the rules in which the KV type matters (the former among them).
const std::vector<EngineCase>& rule_cases();
const std::vector<EngineCase>& kv_cases();

}  // namespace modeld
