// The scripted engine's KV cells and the books of who holds them.
//
// Invariant: a sequence's entries ascend by place, one cell each; a cell is free exactly if no sequence holds it; all
//            holders of a cell see it at the same place. REQUIRES of the calls are checked by the engine, not here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/scripted/weights.h"

namespace modeld {

class ScriptedCells {
 public:
  struct Entry {
    Place place;
    std::int32_t cell = 0;
  };

  ScriptedCells(std::int32_t cells, std::int32_t sequences, KvType type);

  /// Bytes of one layer's K and V, and of a whole token, in the cache's format.
  [[nodiscard]] std::size_t key_bytes() const { return key_bytes_; }
  [[nodiscard]] std::size_t token_bytes() const { return token_bytes_; }
  /// Numbers that a token's K and V are.
  [[nodiscard]] static std::int64_t token_values();
  [[nodiscard]] std::int64_t stored_bytes() const { return static_cast<std::int64_t>(stored_.size()); }
  [[nodiscard]] std::int64_t working_bytes() const;
  static std::int64_t working_bytes(std::int32_t cells);

  [[nodiscard]] std::int32_t free() const { return static_cast<std::int32_t>(free_.size()); }
  [[nodiscard]] std::int32_t used() const { return static_cast<std::int32_t>(holders_.size()) - free(); }
  [[nodiscard]] std::span<const Entry> entries(SeqId seq) const { return sequences_[index(seq)]; }
  /// The entries of a range of places.
  [[nodiscard]] std::span<const Entry> entries(SeqId seq, PlaceRange places) const;
  [[nodiscard]] PlaceRange extent(SeqId seq) const;
  [[nodiscard]] bool moved(std::int32_t cell) const { return moved_[index(cell)] != 0; }
  void mark_moved(std::int32_t cell) { moved_[index(cell)] = 1; }
  [[nodiscard]] bool shared(std::int32_t cell) const { return holders_[index(cell)] > 1; }

  /// A free cell at a free place. REQUIRES free() > 0.
  std::int32_t take(SeqId seq, Place place);
  void drop(SeqId seq, PlaceRange places);
  /// REQUIRES none of the places held in `to`.
  void share(SeqId from, SeqId to, PlaceRange places);
  /// Changes places only; the caller turns the keys. REQUIRES the target free, no cell shared.
  void shift(SeqId seq, PlaceRange places, std::int32_t delta);

  /// Rounds to the cache's format: what attention reads is what is stored.
  void store(std::int32_t cell, int layer, std::span<const float> key, std::span<const float> value);
  [[nodiscard]] std::span<const std::byte> stored(std::int32_t cell) const;
  void restore(std::int32_t cell, std::span<const std::byte> bytes);
  /// Turns the keys of a cell by `steps` places, from the stored form, and rounds them again.
  void turn(std::int32_t cell, const ScriptedWeights& weights, std::int32_t steps);
  [[nodiscard]] const float* key(int layer, std::int32_t cell) const;
  [[nodiscard]] const float* value(int layer, std::int32_t cell) const;

  [[nodiscard]] std::string check_integrity() const;

 private:
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::vector<Entry>::iterator at_or_after(SeqId seq, Place place);
  std::span<std::byte> stored_layer(std::int32_t cell, int layer);
  void load(std::int32_t cell, int layer);

  KvType type_;
  std::size_t key_bytes_;
  std::size_t token_bytes_;
  std::vector<std::vector<Entry>> sequences_;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> holders_;
  std::vector<std::uint8_t> moved_;
  std::vector<std::byte> stored_;
  std::vector<float> working_;  // the stored numbers as f32: cell, layer, K then V
};

}  // namespace modeld
