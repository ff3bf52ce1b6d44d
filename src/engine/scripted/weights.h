// The hand-made weights: embeddings, and what each head asks and answers.
//
// Layer 0   K = [position | e(token)], Q of head h = [position turned back by h+1 steps]: attends the token h+1 places
// before.
//           V = e(token), so that its heads put out x1 = e(one before) and x2 = e(two before).
// Layer 1   K = [position, weak | x1 | part of x2 | sink], Q = [position | e(token) | part of x1 | 1]: attends places
// whose
//           two predecessors are the current two tokens; the nearer of equal ones a little more. V = e(token) again.
//           Head 0 is sharp, head 1 broad and without the second predecessor. A token without a predecessor serves as
//           the sink that attention falls back to when nothing matches.
// Logits    e(candidate) · (output of head 0 + a little of head 1).
// The position part is where RoPE turns; scores are divided by √key_dim as everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/geometry.h"
#include "stream/tokens.h"

namespace modeld {

class ScriptedWeights {
 public:
  static constexpr int kLayers = 2;
  static constexpr int kHeads = 2;
  static constexpr int kRopeDims = 16;
  static constexpr int kEmbedding = 64;
  static constexpr int kKeyDim = 128;
  static constexpr int kValueDim = 64;

  ScriptedWeights(std::uint64_t seed, std::int32_t vocabulary, RopeStyle style);

  [[nodiscard]] const Rope& rope() const { return rope_; }
  [[nodiscard]] std::span<const double> frequencies() const { return frequencies_; }
  [[nodiscard]] std::int64_t bytes() const;

  /// e(token): a unit vector.
  [[nodiscard]] std::span<const float> embedding(Token token) const;
  /// Un-rotated; `one_before` and `two_before` are layer 0's outputs and not read for layer 0. out: kKeyDim.
  void key(int layer, Token token, std::span<const float> one_before, std::span<const float> two_before,
           std::span<float> out) const;
  void query(int layer, int head, Token token, std::span<const float> one_before, std::span<float> out) const;
  /// Dimensions, from the first on, beyond which every query of this head is zero: a dot product may stop there.
  [[nodiscard]] static int active_dims(int layer, int head);
  /// out: one logit a token of the vocabulary.
  void logits(std::span<const float> sharp, std::span<const float> broad, std::span<float> out) const;

 private:
  void set_phase(std::span<float> vector, float amplitude, double steps_back) const;

  Rope rope_;
  std::vector<double> frequencies_;
  std::vector<float> embeddings_;
};

/// Sum of products in one fixed order. REQUIRES n to be a multiple of 16.
float fixed_dot(const float* a, const float* b, int n);

}  // namespace modeld
