#include "cli/prepare.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "cli/interrupt.h"
#include "session/calibrate.h"

namespace modeld {

Result<ModelDescription> describe_model(const EngineEntry& engine, const ModelChoice& choice) {
  ModelDescription description;
  MODELD_TRY(description.geometry, engine.describe(choice.model));
  MODELD_TRY(description.devices, engine.devices());
  if (description.devices.empty()) return fail(ErrorCode::internal, "The engine named no memory, not even the host's.");
  const std::int32_t window = description.geometry.trained_window;
  description.compute_bytes = engine.compute_bytes(description.geometry, choice.hot_tokens.value_or(window));
  return description;
}

Result<Budget> budget_for(const ModelDescription& description, const ModelChoice& choice, KvType kv_type) {
  BudgetRequest request;
  request.geometry = description.geometry;
  request.kv_type = kv_type;
  request.device = description.device();
  request.host = description.host();
  request.compute_bytes = description.compute_bytes;
  request.hot_tokens = choice.hot_tokens;
  request.cold_bytes = choice.host_budget;
  return derive_budget(request);
}

Status check_usable(const ModelGeometry& geometry) {
  for (const ModelGeometry::Unsupported& entry : geometry.unsupported)
    if (entry.fatal) return fail(entry.code, entry.reason);
  return {};
}

Result<ReadyModel> plan_model(const EngineEntry& engine, const ModelChoice& choice) {
  ReadyModel planned;
  MODELD_TRY(planned.description, describe_model(engine, choice));
  MODELD_TRY_VOID(check_usable(planned.description.geometry));
  MODELD_TRY(planned.budget, budget_for(planned.description, choice, choice.kv_type));
  return planned;
}

Status open_model(const EngineEntry& engine, const ModelChoice& choice, ReadyModel& planned, ProgressDisplay& display) {
  display.note(fmt::format("Loading {} ({})", choice.model.string(),
                           bytes_text(static_cast<std::int64_t>(planned.description.geometry.weight_bytes))));
  MODELD_TRY(planned.engine, engine.open(choice.model, display.sink(), &interrupt_flag()));
  display.finish();
  if (interrupt_flag().requested()) return fail(ErrorCode::cancelled, "Stopped while the model was loading.");
  return {};
}

Result<ReadyModel> load_model(const EngineEntry& engine, const ModelChoice& choice, ProgressDisplay& display) {
  MODELD_TRY(ReadyModel model, plan_model(engine, choice));
  MODELD_TRY_VOID(open_model(engine, choice, model, display));
  return model;
}

Result<std::filesystem::path> cache_directory() {
  // The XDG base directory specification ignores relative values.
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/')
    return std::filesystem::path(cache) / "modeld";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return std::filesystem::path(home) / ".cache" / "modeld";
  return fail(ErrorCode::bad_argument,
              "Neither XDG_CACHE_HOME nor HOME names a directory for the cache. Set one of them.");
}

Result<Calibration> ready_calibration(Engine& engine, const ModelChoice& choice, ProgressDisplay& display) {
  MODELD_TRY(const std::filesystem::path cache, cache_directory());
  const std::filesystem::path path = calibration_path(cache, engine.identity());
  if (Result<Calibration> cached = load_calibration(path);
      cached && cached->model == engine.identity().model && cached->engine == engine.identity().engine)
    return cached;
  display.note("First use of this model: finding its retrieval heads. This is done once.");
  CalibrationSettings settings;
  settings.threads = choice.threads;
  MODELD_TRY(Calibration calibration, calibrate_heads(engine, settings, display.sink(), &interrupt_flag()));
  display.finish();
  if (const Status saved = save_calibration(path, calibration); !saved)
    display.note(fmt::format("modeld: {}: {} The next run will calibrate again.", code_name(saved.error().code),
                             saved.error().message));
  return calibration;
}

}  // namespace modeld
