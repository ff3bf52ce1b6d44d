// What a GGUF file does not say about its architecture, because llama.cpp has it in code.
//
// Source: llama.cpp 0.5.0-dev, llama_model_rope_type() and the load_arch_hparams() of each model. After a load the
//         engine compares what this table led to with what llama.cpp itself says, and refuses the model if they differ.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/geometry.h"

namespace modeld {

enum class AttentionKind : std::uint8_t {
  /// K and V of one token a cell, rotary: what modeld can park.
  causal,
  recurrent,
  hybrid,
  encoder,
  /// Compressed keys and values, learned or biased positions, several positions a token, shared layers…
  other,
};

/// Which layers rotate nothing although the model is rotary.
enum class UnrotatedLayers : std::uint8_t { none, every_fourth, global };

struct Architecture {
  std::string_view name;
  AttentionKind kind = AttentionKind::other;
  RopeStyle rope = RopeStyle::none;
  /// One layer in `period` is global where the file names a window but no pattern; 0: windows are not used.
  std::int32_t period = 0;
  /// The windowed layers' frequency base where the file has none: the global one (true) or 10,000 (false).
  bool window_inherits_base = false;
  /// The windowed layers' frequency scale: the global one (true) or 1 (false).
  bool window_inherits_scale = false;
  /// Window where the file does not name one; 0: then there are no windowed layers.
  std::int32_t default_window = 0;
  UnrotatedLayers unrotated = UnrotatedLayers::none;
  /// For `other`: what about it cannot be moved, a clause.
  std::string_view reason;
};

/// nullptr for one that this table does not know.
const Architecture* find_architecture(std::string_view name);

}  // namespace modeld
