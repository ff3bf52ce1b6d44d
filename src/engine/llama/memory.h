// How much memory a llama.cpp context holds, counted from its buffers.
//
// Invariant: memory.cc alone sees llama.cpp's extension header, which is not installed with it.
#pragma once

#include "engine/engine.h"

struct llama_context;

namespace modeld {

/// All devices together.
EngineMemory memory_of(const llama_context* context);

}  // namespace modeld
