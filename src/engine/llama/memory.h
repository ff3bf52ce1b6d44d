// How much memory a llama.cpp context holds: counted from its buffers, and foreseen before there is one.
//
// Invariant: memory.cc alone sees llama.cpp's extension header, which is not installed with it.
#pragma once

#include "engine/engine.h"

struct llama_context;

namespace modeld {

/// All devices together.
EngineMemory memory_of(const llama_context* context);

/// What llama.cpp will reserve for computing batches of `batch` tokens in a context of `cells`, in bytes: logits, the
/// widest activations of a layer and the attention mask. An upper bound of about that size, held against memory_of() by
/// the tests.
std::int64_t foreseen_compute_bytes(const ModelGeometry& geometry, std::int32_t cells, std::int32_t batch);

}  // namespace modeld
