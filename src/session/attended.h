// What the retrieval heads attend in sequence 0, and the queries that are held against it: how strongly a token would
// be drawn to a cold block is measured by what it attends anyway.
//
// Thread: free of shared state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "model/geometry.h"
#include "recall/calibration.h"
#include "recall/key_index.h"
#include "recall/score.h"

namespace modeld {

/// Rotated keys by KV head, in ascending order of place.
class AttendedKeys {
 public:
  AttendedKeys(const ModelGeometry& geometry, const KeyIndex& index);

  /// Adds the keys of consecutive places from `at` on, behind those that are here: un-rotated, rows × key_dim, for
  /// index.kv_heads()[head].
  void append(std::size_t head, std::span<const float> keys, Place at);
  /// The same for every head of the index at once: the stream's own keys, as the index keeps them.
  void append(const KeyIndex& index, StreamRange range, Place at);
  /// Rows of an observation that recorded the index's heads.
  void append(const Observation& seen, Place at);

  /// log Σ exp of a query's scores over all places up to its own, `at`, as far as its layer sees. `rotated`: the query,
  /// turned to `at`.
  [[nodiscard]] double local_lse(std::size_t head, std::span<const float> rotated, Place at) const;
  /// The same over those of these places alone.
  [[nodiscard]] double local_lse(std::size_t head, std::span<const float> rotated, Place at, PlaceRange places) const;

 private:
  struct Head {
    LayerGeometry layer;
    std::vector<double> frequencies;
    std::vector<float> keys;
    std::vector<Place> places;
  };
  std::size_t dim_;
  std::vector<Head> heads_;
};

/// The queries of rows [first, first + count) of an observation that recorded the calibration's heads before RoPE, as
/// the scorer takes them. Row 0 stands at `at`; its own keys, and all before them, are in `attended`.
std::vector<HeadQueries> queries_of(const ModelGeometry& geometry, const Calibration& calibration,
                                    const KeyIndex& index, const Observation& seen, std::int32_t first,
                                    std::int32_t count, Place at, const AttendedKeys& attended);

}  // namespace modeld
