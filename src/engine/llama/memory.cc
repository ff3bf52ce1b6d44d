#include "engine/llama/memory.h"

#include <llama-ext.h>

#include <algorithm>

namespace modeld {

EngineMemory memory_of(const llama_context* context) {
  EngineMemory memory;
  for (const auto& [type, part] : llama_get_memory_breakdown(context)) {
    memory.weights += static_cast<std::int64_t>(part.model);
    memory.kv += static_cast<std::int64_t>(part.context);
    memory.compute += static_cast<std::int64_t>(part.compute);
  }
  return memory;
}

std::int64_t foreseen_compute_bytes(const ModelGeometry& geometry, std::int32_t cells, std::int32_t batch) {
  std::int64_t attention = 0;
  for (const LayerGeometry& layer : geometry.layers)
    attention = std::max(attention, std::int64_t{layer.heads} * (layer.key_dim + layer.value_dim));
  const std::int64_t activations = 8 * std::int64_t{geometry.embedding} + attention;
  return batch * std::int64_t{sizeof(float)} * (geometry.vocabulary + activations + cells);
}

}  // namespace modeld
