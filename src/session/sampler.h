// Choosing the next token from logits.
#pragma once

#include <random>
#include <span>
#include <vector>

#include "session/session.h"
#include "stream/tokens.h"

namespace modeld {

/// Greedy at temperature 0; otherwise top-k, then softmax at the temperature, then top-p (nucleus, arXiv 1904.09751),
/// then a draw from the seeded generator. The same seed and logits give the same tokens.
class Sampler {
 public:
  explicit Sampler(const Sampling& sampling) : sampling_(sampling), random_(sampling.seed) {}
  /// REQUIRES logits to be non-empty. Ties go to the lowest token.
  Token sample(std::span<const float> logits);

 private:
  Sampling sampling_;
  std::mt19937_64 random_;
  std::vector<std::pair<float, Token>> candidates_;
};

/// Length of the longest prefix of `text` that ends at a whole UTF-8 character; at most three bytes are held back.
std::size_t whole_utf8(std::string_view text);

}  // namespace modeld
