// The way from a model file to a model that is ready to be asked: describe, budget, load, calibrate. In this order, so
// that what cannot work is refused before anything long begins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "cli/engine_entry.h"
#include "cli/terminal.h"
#include "engine/embedder.h"
#include "engine/engine.h"
#include "model/kv_type.h"
#include "plan/budget.h"
#include "recall/calibration.h"

namespace modeld {

/// What the user chose of the model and its memory.
struct ModelChoice {
  std::filesystem::path model;
  KvType kv_type = KvType::f16;
  std::optional<KvType> cold_type;
  std::optional<std::int32_t> hot_tokens;
  /// 0: as derive_budget() has it.
  std::int64_t host_budget = 0;
  std::int32_t threads = 0;
  /// A sentence embedder to select by meaning, too; empty: none.
  std::filesystem::path embedder;
};

struct ModelDescription {
  ModelGeometry geometry;
  std::vector<DeviceMemory> devices;
  std::int64_t compute_bytes = 0;

  [[nodiscard]] const DeviceMemory& host() const { return devices.front(); }
  /// Where KV goes: the first accelerator, else the host.
  [[nodiscard]] const DeviceMemory& device() const { return devices.size() > 1 ? devices[1] : devices.front(); }
};

/// Describes without loading; memory is as it is now.
Result<ModelDescription> describe_model(const EngineEntry& engine, const ModelChoice& choice);

/// The budget for a KV type under the user's choice.
Result<Budget> budget_for(const ModelDescription& description, const ModelChoice& choice, KvType kv_type);

/// The first fatal entry of geometry.unsupported as an error.
Status check_usable(const ModelGeometry& geometry);

/// A model on its way to be asked.
struct ReadyModel {
  ModelDescription description;
  Budget budget;
  /// Null where none was chosen. Loaded while planning, so that the budget is of the memory that it leaves.
  std::unique_ptr<Embedder> embedder;
  std::unique_ptr<Engine> engine;
};

/// Describes, loads the embedder and derives the budget; refuses what cannot be used. `engine` stays empty.
Result<ReadyModel> plan_model(const EngineEntry& engine, const ModelChoice& choice);
/// Loads what plan_model() planned.
Status open_model(const EngineEntry& engine, const ModelChoice& choice, ReadyModel& planned, ProgressDisplay& display);
/// Both in turn.
Result<ReadyModel> load_model(const EngineEntry& engine, const ModelChoice& choice, ProgressDisplay& display);

/// $XDG_CACHE_HOME/modeld, or ~/.cache/modeld. Errors: bad_argument when neither is set.
Result<std::filesystem::path> cache_directory();

/// Whether a calibration can be kept there, tried before the minutes that it takes. Errors: io_failed, disk_full.
Status check_cache(const std::filesystem::path& calibration);

/// The cached calibration, or one made now and cached. A cache that cannot be written is noted, not an error.
Result<Calibration> ready_calibration(Engine& engine, const ModelChoice& choice, ProgressDisplay& display);

}  // namespace modeld
