// How likely a model finds a text: what Session::score() gives, and the arithmetic for one token.
//
// Units: natural logarithms. The perplexity of tokens is exp(the mean of their negative log-likelihoods).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stream/tokens.h"

namespace modeld {

/// A text scored token by token.
struct Scored {
  /// Negative log-likelihood of each token.
  std::vector<double> nll;
  /// The most tokens that one of them was predicted from.
  std::int64_t attended_tokens = 0;
  /// Blocks that were read, over all stretches; the same block counts as often as it was read.
  std::int64_t blocks_read = 0;
};

/// −ln of the softmax of `logits` at `token`, in double and for logits of any size. REQUIRES a token of the vocabulary.
double negative_log_likelihood(std::span<const float> logits, Token token);

}  // namespace modeld
