// The recall index: un-rotated keys of the retrieval heads' KV heads for every token of the stream, int8, in host RAM.
//
// Layout: per KV head, tiles of 16 tokens; within a tile pairs of dimensions are interleaved token by token, so that
// one vector
//         register holds one dimension pair of 16 tokens and dot products need no horizontal sums (see score.cc).
// Memory: pieces of 32 tiles, allocated when reached and freed when truncated, so what is held stays within one piece a
// head
//         of bytes(), and growing never copies.
// Thread: const calls may run side by side; append and truncate need exclusive use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "model/geometry.h"
#include "stream/tokens.h"

namespace modeld {

class KeyIndex {
 public:
  /// `kv_heads`: which heads are kept, each `key_dim` wide (a multiple of 2).
  KeyIndex(std::vector<KvHeadRef> kv_heads, std::int32_t key_dim);

  [[nodiscard]] std::span<const KvHeadRef> kv_heads() const { return kv_heads_; }
  [[nodiscard]] std::int32_t key_dim() const { return key_dim_; }
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  /// Bytes held for tokens() tokens, in whole tiles.
  [[nodiscard]] std::int64_t bytes() const;
  /// Bytes that one token takes: kv_heads × (key_dim + 2).
  [[nodiscard]] std::int64_t bytes_per_token() const;

  /// Appends the keys of `count` tokens at the end. keys[i]: count × key_dim f32, row-major, for kv_heads()[i].
  /// Each token's key is scaled by its own largest magnitude / 127 (f16 scale). REQUIRES the sizes to match.
  void append(std::span<const std::vector<float>> keys, std::int32_t count);
  /// Appends a copy of tokens as `from`, an index of the same heads or this one, keeps them. REQUIRES a range within
  /// from.tokens().
  void append_copy(const KeyIndex& from, StreamRange range);

  // As bytes, to be stored: whole pieces of kPieceTokens tokens, which never change once they are full, and the tiles
  // of a last one that is not.
  static constexpr std::int64_t kPieceTokens = 512;
  [[nodiscard]] std::int64_t piece_bytes() const { return kPieceTokens * bytes_per_token(); }
  /// The full pieces from `first` on.
  [[nodiscard]] std::vector<std::byte> pieces(std::int64_t first) const;
  /// What follows the full pieces.
  [[nodiscard]] std::vector<std::byte> tail() const;
  /// Replaces what is here by what pieces(0) and tail(), one after the other, gave of `tokens` tokens. False, and
  /// nothing changed, for bytes of another length.
  [[nodiscard]] bool load(std::span<const std::byte> bytes, std::int64_t tokens);

  /// The keys of a range for kv_heads()[head], back as f32: range.size() × key_dim.
  [[nodiscard]] std::vector<float> keys(std::size_t head, StreamRange range) const;

  // For the scorer: tile t of head h holds tokens 16t … 16t+15 (missing ones are zero with scale zero).
  static constexpr std::int32_t kTile = 16;
  [[nodiscard]] const std::int8_t* tile(std::size_t head, std::int64_t t) const;
  [[nodiscard]] const std::uint16_t* tile_scales(std::size_t head, std::int64_t t) const;  // 16 f16 values

 private:
  std::vector<KvHeadRef> kv_heads_;
  std::int32_t key_dim_;
  std::int64_t tokens_ = 0;
  static constexpr std::int64_t kPieceTiles = kPieceTokens / kTile;
  struct Piece {
    std::vector<std::int8_t> keys;
    std::vector<std::uint16_t> scales;
  };
  std::vector<std::vector<Piece>> pieces_;  // by KV head

  /// Pieces for `tokens` tokens.
  void reserve(std::int64_t tokens);
  /// The first tiles of piece `p`, head by head: keys, then scales.
  void write_tiles(std::int64_t p, std::int64_t tiles, std::vector<std::byte>& out) const;
  void put(std::size_t head, std::int64_t token, const float* key);
};

}  // namespace modeld
