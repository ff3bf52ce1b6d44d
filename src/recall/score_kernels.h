// The inner loops of the scorer, one version per instruction set, chosen when first called (Highway).
//
// Keys come as int16 rows: row p holds dimensions 2p and 2p+1 of every token, interleaved, kWide tokens a row. Queries
// come in groups of kGroup: for each pair of dimensions, kGroup × two int16. A register then holds one pair of
// dimensions of many tokens and meets one query's pair, broadcast: no sum across a register is ever needed. Thread:
// free of state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace modeld::kernels {

/// Queries that are multiplied together; their number is padded to a multiple of it.
inline constexpr std::size_t kGroup = 4;
/// Tokens of a row are a multiple of it.
inline constexpr std::size_t kStep = 32;
/// What a lane that does not count is given: far below every score, and still a number.
inline constexpr float kOutside = -1e30F;

/// One tile of the key index (16 tokens, int8) into its place in the rows. `wide`: tokens a row.
void widen_tile(const std::int8_t* tile, std::size_t pairs, std::size_t wide, std::int16_t* rows);

struct Chunk {
  /// pairs × wide × 2.
  const std::int16_t* keys = nullptr;
  std::size_t pairs = 0;
  std::size_t wide = 0;
  /// The tokens that hold something, a multiple of kStep, at most `wide`.
  std::size_t tokens = 0;
  /// Per token: the key's scale; 0, or kOutside where the token is not part of the block.
  const float* scales = nullptr;
  const float* bias = nullptr;
};

/// scores[q × wide + j] = (query q · key j) × query_scales[q] × scales[j] + bias[j], for `queries` queries, a multiple
/// of kGroup. REQUIRES Σ|q·k| < 2^31 for every pair.
void score_chunk(const Chunk& chunk, const std::int32_t* query_pairs, const float* query_scales, std::size_t queries,
                 float* scores);

/// largest[q] = max(largest[q], scores of row q).
void fold_max(const float* scores, std::size_t rows, std::size_t wide, std::size_t tokens, float* largest);

/// Log-sum-exp in base 2, kept as sum × 2^largest. Starts as {kOutside, 0}.
struct PowerSum {
  float largest = kOutside;
  double sum = 0.0;
};
/// The same as fold_max, and adds 2^score of every token to sums[q].
void fold_max_and_sum(const float* scores, std::size_t rows, std::size_t wide, std::size_t tokens, float* largest,
                      PowerSum* sums);

/// out[row] = query · row.
void dot_rows(const float* query, const float* rows, std::size_t dim, std::size_t count, float* out);

}  // namespace modeld::kernels
