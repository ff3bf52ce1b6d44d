// What is known of a model without loading it: its attention geometry, trained window, RoPE and sizes.
//
// Invariant: everything here follows from the model's own metadata. Two descriptions of one file are equal, before a
// load and after it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/kv_type.h"

namespace modeld {

/// How a layer's rotary embedding pairs dimensions. norm: (2i, 2i+1); neox: (i, i + n/2).
enum class RopeStyle : std::uint8_t { none, norm, neox };

struct Rope {
  RopeStyle style = RopeStyle::none;
  /// Rotated dimensions, from the first on; the rest of a head passes through.
  std::int32_t dims = 0;
  double freq_base = 10000.0;
  /// Positions are multiplied by it (1 / linear scaling factor).
  double freq_scale = 1.0;
  /// Divisors of each pair's frequency (Llama 3 style); empty means all 1. dims/2 entries.
  std::vector<float> freq_factors;
  friend bool operator==(const Rope&, const Rope&) = default;
};

struct LayerGeometry {
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t key_dim = 0;
  std::int32_t value_dim = 0;
  /// Attended tokens of a sliding-window layer; 0 for a global one.
  std::int32_t window = 0;
  Rope rope;
  friend bool operator==(const LayerGeometry&, const LayerGeometry&) = default;
};

struct ModelGeometry {
  std::string architecture;
  std::string name;
  std::int32_t trained_window = 0;
  std::int32_t vocabulary = 0;
  std::int32_t embedding = 0;
  std::vector<LayerGeometry> layers;
  std::uint64_t weight_bytes = 0;
  bool has_chat_template = false;
  /// What modeld cannot do with this model, with stable codes; a load is refused when any is fatal.
  struct Unsupported {
    ErrorCode code = ErrorCode::internal;
    std::string reason;
    bool fatal = false;
    friend bool operator==(const Unsupported&, const Unsupported&) = default;
  };
  std::vector<Unsupported> unsupported;

  friend bool operator==(const ModelGeometry&, const ModelGeometry&) = default;

  /// Bytes of K and V of one token over all layers (a windowed layer counts like a global one: modeld keeps its cells);
  /// 0 where supports(type) is false.
  [[nodiscard]] std::int64_t kv_bytes_per_token(KvType type) const;
  /// Whether every head's keys and values are whole groups of this type's numbers (32 for the quantised ones).
  [[nodiscard]] bool supports(KvType type) const;
};

/// Names a query head; `layer` and `head` count from 0.
struct HeadRef {
  std::int32_t layer = 0;
  std::int32_t head = 0;
  friend auto operator<=>(const HeadRef&, const HeadRef&) = default;
};
/// Names a KV head.
struct KvHeadRef {
  std::int32_t layer = 0;
  std::int32_t kv_head = 0;
  friend auto operator<=>(const KvHeadRef&, const KvHeadRef&) = default;
};
/// The KV head that a query head reads (grouped-query attention: consecutive query heads share one).
/// REQUIRES the model to have that head.
KvHeadRef kv_head_of(const ModelGeometry& geometry, HeadRef head);

}  // namespace modeld
