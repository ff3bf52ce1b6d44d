#include "cli/prepare.h"

#include <fmt/format.h>

#include <string>
#include <system_error>
#include <utility>

#include "cli/interrupt.h"
#include "cli/user_directory.h"
#include "recall/replace_file.h"
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
  if (choice.host_budget > 0) request.cold_bytes = choice.host_budget;
  return derive_budget(request);
}

Status check_usable(const ModelGeometry& geometry) {
  for (const ModelGeometry::Unsupported& entry : geometry.unsupported)
    if (entry.fatal) return fail(entry.code, entry.reason);
  return {};
}

Result<ReadyModel> plan_model(const EngineEntry& engine, const ModelChoice& choice) {
  ReadyModel planned;
  if (!choice.embedder.empty()) {
    MODELD_TRY(planned.embedder, engine.open_embedder(choice.embedder, choice.threads));
  }
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
  if (const auto directory = user_directory("XDG_CACHE_HOME", ".cache")) return *directory;
  return fail(ErrorCode::bad_argument,
              "Neither XDG_CACHE_HOME nor HOME names a directory for the cache. Set one of them.");
}

Status check_cache(const std::filesystem::path& calibration) {
  // More than a calibration takes.
  const std::string room(std::size_t{256} << 10U, ' ');
  const std::filesystem::path trial = calibration.parent_path() / ".room";
  const Status written = replace_file(trial, room);
  std::error_code ignored;
  std::filesystem::remove(trial, ignored);
  return written;
}

Result<Calibration> ready_calibration(Engine& engine, const ModelChoice& choice, ProgressDisplay& display) {
  MODELD_TRY(const std::filesystem::path cache, cache_directory());
  const std::filesystem::path path = calibration_path(cache, engine.identity());
  if (Result<Calibration> cached = load_calibration(path);
      cached && cached->model == engine.identity().model && cached->engine == engine.identity().engine)
    return cached;
  const Status kept = check_cache(path);
  display.note(kept ? "First use of this model: finding its retrieval heads. This is done once."
                    : fmt::format("First use of this model: finding its retrieval heads. They cannot be kept, so that "
                                  "the next run will look for them again: {}",
                                  kept.error().message));
  CalibrationSettings settings;
  settings.threads = choice.threads;
  MODELD_TRY(Calibration calibration, calibrate_heads(engine, settings, display.sink(), &interrupt_flag()));
  display.finish();
  if (const Status saved = save_calibration(path, calibration); kept && !saved)
    display.note(fmt::format("The heads could not be kept, so that the next run will look for them again: {}",
                             saved.error().message));
  return calibration;
}

}  // namespace modeld
