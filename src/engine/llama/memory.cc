#include "engine/llama/memory.h"

#include <llama-ext.h>

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

}  // namespace modeld
