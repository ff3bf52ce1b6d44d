// Opens a GGUF sentence embedder (BERT and its like: bidirectional attention, pooled) on llama.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "engine/embedder.h"

namespace modeld {

/// `threads` as in ContextSpec. Errors: file_missing, model_load_failed, unsupported_operation for a model that does
/// not pool its tokens into one vector.
Result<std::unique_ptr<Embedder>> open_llama_embedder(const std::filesystem::path& gguf, std::int32_t threads);

}  // namespace modeld
