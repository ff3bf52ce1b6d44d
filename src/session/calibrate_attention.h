// Attention of single heads, computed outside the engine from recorded queries and keys: what calibration looks at.
//
// Units: a score is q·k/√D, as the model's softmax sees it. Rows are tokens of one context, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace modeld {

/// The rotated keys of one KV head over a context, laid out so that one query meets 16 tokens at a time: tiles of 16
/// tokens, dimension by dimension. (A plain row-by-row dot product is a float sum that the compiler may not reorder.)
class KeyTiles {
 public:
  explicit KeyTiles(std::int32_t key_dim) : key_dim_(static_cast<std::size_t>(key_dim)) {}

  [[nodiscard]] std::size_t tokens() const { return tokens_; }
  /// REQUIRES key.size() == key_dim.
  void append(std::span<const float> key);
  /// Forgets tokens from `tokens` on.
  void truncate(std::size_t tokens);
  /// Writes q·k/√D for tokens [begin, end) to out[0 … end-begin).
  /// REQUIRES begin ≤ end ≤ tokens() and out.size() ≥ end-begin.
  void scores(std::span<const float> query, std::size_t begin, std::size_t end, std::span<float> out) const;

 private:
  static constexpr std::size_t kTile = 16;
  std::size_t key_dim_;
  std::size_t tokens_ = 0;
  std::vector<float> data_;
};

/// The share of the softmax over `scores` that falls on [begin, end).
double softmax_share(std::span<const float> scores, std::size_t begin, std::size_t end);

/// log Σ exp over `scores`; minus infinity when empty.
double log_sum_exp_of(std::span<const float> scores);

}  // namespace modeld
