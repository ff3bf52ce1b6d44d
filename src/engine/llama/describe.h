// What a GGUF model is, answered from its metadata alone: nothing is mapped, loaded or allocated.
//
// Invariant: the same answer before a load and after it; the engine refuses a model that llama.cpp sees otherwise.
#pragma once

#include <filesystem>

#include "base/error.h"
#include "model/geometry.h"

namespace modeld {

/// The geometry of a model file. What modeld cannot do with the model is in `unsupported`, not an error.
/// Errors: file_missing, model_not_gguf, model_truncated (the file is shorter than its tables say: found here, before
/// anything maps it), model_load_failed (a table that every model has is absent or nonsensical), io_failed.
Result<ModelGeometry> describe_llama(const std::filesystem::path& gguf);

}  // namespace modeld
