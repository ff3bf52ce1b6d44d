// Calibration: finds a model's retrieval heads and its best reading policy by asking it synthetic questions.
//
// Heads:   contexts of synthetic prose with planted facts, full attention; for each head the attention mass from the
// question's content
//          tokens onto the fact (design §7). The template's tokens after the question carry no signal and are left out.
// Reading: a longer stream with planted facts is ingested under each candidate policy (streamed with several windows,
// isolated with
//          and without run-up; 1 to 8 blocks; orders) and asked; the best policy is kept, ties to the cheaper one.
// Thread:  uses the engine's context; one thread; cancel stops within a second and returns cancelled.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/cancel.h"
#include "base/error.h"
#include "base/progress.h"
#include "engine/engine.h"
#include "recall/calibration.h"

namespace modeld {

struct CalibrationSettings {
  std::uint64_t seed = 1;
  std::int32_t threads = 0;
  /// Contexts and their length for the heads; the length is cut to 3/4 of the trained window.
  std::int32_t contexts = 4;
  std::int32_t context_tokens = 2048;
  std::int32_t questions_per_context = 10;
  /// Of the KV bytes per token at f16, what the index may take (choose_heads()).
  double index_share = 0.03;
  /// Stream length for the reading policy and questions a policy.
  std::int32_t stream_tokens = 12288;
  std::int32_t stream_questions = 24;
  /// Time for the reading policies in one call; what was not measured then is measured by the next call.
  double reading_seconds = 600.0;
};

/// Finds heads, virtual distance and score rule; `reading` is the safe default. Errors: calibration_failed, cancelled,
/// the engine's.
Result<Calibration> calibrate_heads(Engine& engine, const CalibrationSettings& settings,
                                    const ProgressSink& progress = {}, const CancelFlag* cancel = nullptr);

/// Measures reading policies and writes the best into `calibration`. Rows already present are not measured again
/// (resumable): `save` is called after each row.
Status calibrate_reading(Engine& engine, Calibration& calibration, const CalibrationSettings& settings,
                         const std::function<Status(const Calibration&)>& save, const ProgressSink& progress = {},
                         const CancelFlag* cancel = nullptr);

/// Where a model's calibration is cached: <cache>/calibrations/<model digest>-<engine>.json.
std::filesystem::path calibration_path(const std::filesystem::path& cache_dir, const Identity& identity);

}  // namespace modeld
