// The form of an exported run: our own header around llama.cpp's sequence blobs, and a full check of both.
//
// Form (little endian, no padding between parts):
//   header   magic "MDKVLLAM", version, KV type, first place, tokens, digest of the geometry, length of the body,
//            XXH3-128 of all header fields before it and the body
//   body     one or more pieces: first place (i32), tokens (i32), length (u64), blob
//   blob     what llama_state_seq_get_data() gives for one sequence of a unified cache with flash attention: magic,
//            sequence, then per cache (global layers; windowed layers) streams, cells, places, K rows, V rows
// Invariant: llama.cpp accepts forged places and trailing bytes without a word, so nothing reaches it that was not
//            walked through here field by field. Pure: knows llama.cpp's byte layout, not llama.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "engine/engine.h"
#include "model/geometry.h"
#include "model/kv_type.h"

namespace modeld {

/// The exact shape that a blob of this model must have.
class BlobLayout {
 public:
  /// `packed`: the rows' format where it is not the context's.
  BlobLayout(const ModelGeometry& geometry, KvType kv_type, std::optional<KvType> packed = std::nullopt);

  /// Bytes of a blob of one sequence that holds `global` cells in the global layers' cache and `windowed` in the
  /// windowed layers' (ignored if the model has none).
  [[nodiscard]] std::size_t bytes(std::int32_t global, std::int32_t windowed) const;
  /// Empty if `blob` is exactly a blob of the consecutive places [first, first + tokens), in any order of cells;
  /// otherwise what is wrong with it, a clause.
  [[nodiscard]] std::string check(std::span<const std::byte> blob, Place first, std::int32_t tokens) const;
  /// Of the layers' shapes, for the header.
  [[nodiscard]] const Digest128& geometry_digest() const { return digest_; }
  [[nodiscard]] KvType kv_type() const { return kv_type_; }
  [[nodiscard]] std::optional<KvType> packed() const { return packed_; }
  /// `blob`, which check() has passed, with its rows as `to`, of the same geometry, has them.
  void convert(std::span<const std::byte> blob, std::int32_t tokens, const BlobLayout& to,
               std::span<std::byte> out) const;
  /// Tokens that one blob can hold whole: the window, or no limit (0).
  [[nodiscard]] std::int32_t piece_limit() const { return window_; }

 private:
  struct Cache {
    std::vector<std::uint64_t> key_rows;
    std::vector<std::uint64_t> value_rows;
  };
  std::vector<Cache> caches_;
  KvType kv_type_;
  std::optional<KvType> packed_;
  std::int32_t window_ = 0;
  Digest128 digest_;
};

struct PayloadPiece {
  Place first;
  std::int32_t tokens = 0;
  /// Into the payload's data.
  std::span<const std::byte> blob;
};

/// Builds a payload piece by piece, without a copy of what it holds already.
class PayloadWriter {
 public:
  PayloadWriter(const BlobLayout& layout, PlaceRange places);
  /// Room for a piece's blob; valid until the next call. `bytes` is its exact length.
  std::span<std::byte> add(Place first, std::int32_t tokens, std::size_t bytes);
  KvPayload finish();

 private:
  const BlobLayout& layout_;
  KvPayload payload_;
};

/// The pieces of a payload, in order and without gaps, after a check of every field and of the checksum.
/// Errors: payload_invalid.
Result<std::vector<PayloadPiece>> read_payload(const BlobLayout& layout, const KvPayload& payload);

/// The payload with its rows as `to` has them. Errors: payload_invalid.
Result<KvPayload> convert_payload(const BlobLayout& from, const BlobLayout& to, const KvPayload& payload);

}  // namespace modeld
