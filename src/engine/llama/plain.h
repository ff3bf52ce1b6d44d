// Plain llama.cpp behind PlainModel: llama_decode() and nothing of modeld, with the same threads, weights layout and
// flash attention.
#pragma once

#include <filesystem>
#include <memory>

#include "engine/plain.h"

namespace modeld {

/// Errors: model_load_failed.
Result<std::unique_ptr<PlainModel>> open_plain_llama(const std::filesystem::path& gguf);

}  // namespace modeld
