// The way in: opens a GGUF model as an Engine on llama.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/cancel.h"
#include "base/error.h"
#include "base/progress.h"
#include "engine/engine.h"

namespace modeld {

struct LlamaOptions {
  /// SHA-256 of the file, hex, where the caller knows it already; "": computed while opening (0.2 s for 100 MB).
  std::string model_digest;
  /// Weights may be laid out again for faster kernels, at the cost of a second copy of them in memory.
  bool repack = true;
};

/// Checks the file (describe.h), loads the weights and compares what llama.cpp then says of the model with the
/// description. All layers go to an accelerator if the machine has one. `cancel` may be null; it is watched while
/// opening only. Errors: those of describe_llama(); the code of a fatal entry of ModelGeometry::unsupported;
/// model_load_failed; unsupported_geometry (llama.cpp sees the model otherwise); cancelled.
Result<std::unique_ptr<Engine>> open_llama(const std::filesystem::path& gguf, const LlamaOptions& options = {},
                                           const ProgressSink& progress = {}, const CancelFlag* cancel = nullptr);

}  // namespace modeld
