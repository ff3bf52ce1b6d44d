// What the commands know of an engine: how to describe, measure and open. The table of engines is in main.cc alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "base/progress.h"
#include "engine/embedder.h"
#include "engine/engine.h"
#include "engine/plain.h"
#include "model/geometry.h"
#include "plan/budget.h"

namespace modeld {

struct EngineEntry {
  /// From the model file's metadata, without loading it.
  std::function<Result<ModelGeometry>(const std::filesystem::path&)> describe;
  /// The host first, accelerators after it.
  std::function<Result<std::vector<DeviceMemory>>()> devices;
  /// Bytes of compute buffers for a context of so many cells, before a load.
  std::function<std::int64_t(const ModelGeometry&, std::int32_t cells)> compute_bytes;
  std::function<Result<std::unique_ptr<Engine>>(const std::filesystem::path&, const ProgressSink&, const CancelFlag*)>
      open;
  /// A sentence embedder.
  std::function<Result<std::unique_ptr<Embedder>>(const std::filesystem::path&, std::int32_t threads)> open_embedder;
  /// The engine's own library with the same model, without modeld: for comparisons.
  std::function<Result<std::unique_ptr<PlainModel>>(const std::filesystem::path&)> open_plain;
  /// A copy of a model's weights in another format, for faster kernels.
  std::function<Status(const std::filesystem::path& from, const std::filesystem::path& to, const std::string& format)>
      requantize;
};

}  // namespace modeld
