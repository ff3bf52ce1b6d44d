// modeld calibrate: finds a model's retrieval heads and its reading policy, and caches them.
#include "session/calibrate.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "recall/calibration.h"
#include "recall/key_index.h"

namespace modeld {
namespace {

struct CalibrateOptions {
  ModelChoice choice;
  bool heads_only = false;
  bool reading = false;
  bool force = false;
  bool json = false;
  bool quiet = false;
};

std::string policy_text(const ReadingPolicy& policy) {
  const char* order = policy.order == BlockOrder::best_last    ? "best last"
                      : policy.order == BlockOrder::best_first ? "best first"
                                                               : "in stream order";
  const std::string how = policy.origin == KvOrigin::isolated
                              ? fmt::format("isolated, run-up of {}", policy.run_up)
                              : fmt::format("streamed, window of {}", policy.stream_window);
  return fmt::format("{}; {} blocks, {}", how, policy.blocks, order);
}

std::string calibration_text(const Calibration& calibration, const ModelGeometry& geometry) {
  std::string text = fmt::format("{} retrieval heads (layer, head: attention on the fact)\n", calibration.heads.size());
  for (const HeadMass& head : calibration.heads)
    text += fmt::format("  ({}, {})  {:.3f}\n", head.head.layer, head.head.head, head.mass);
  const std::vector<KvHeadRef> index = index_heads(geometry, calibration.heads);
  const std::int64_t bytes =
      index.empty()
          ? 0
          : KeyIndex(index, geometry.layers[static_cast<std::size_t>(index.front().layer)].key_dim).bytes_per_token();
  const std::int64_t kv = geometry.kv_bytes_per_token(KvType::f16);
  text += fmt::format("Index: {} KV heads, {} a token ({:.1f} % of the KV at f16)\n", index.size(), bytes_text(bytes),
                      kv > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(kv) : 0.0);
  text += fmt::format("Scoring: virtual distance {}, {} rule\n", calibration.distance,
                      calibration.rule == ScoreRule::full ? "full" : "sigmoid");
  text += fmt::format("Reading: {} ({})\n", policy_text(calibration.reading),
                      calibration.reading_measured ? "measured" : "the default; measure with --reading");
  for (const Calibration::Row& row : calibration.rows)
    text += fmt::format("  {:>2} of {} right in {:>6}  {}\n", row.right, row.asked, duration_text(row.seconds),
                        policy_text(row.policy));
  text += fmt::format("Took {}\n", duration_text(calibration.seconds));
  return text;
}

Status calibrate(const CalibrateOptions& options, const EngineEntry& entry, ProgressDisplay& display) {
  if (options.heads_only && options.reading)
    return fail(ErrorCode::bad_argument, "--heads-only and --reading exclude each other. Give one of them, or none.");
  MODELD_TRY(const std::filesystem::path cache, cache_directory());
  MODELD_TRY(const ReadyModel model, load_model(entry, options.choice, display));
  Engine& engine = *model.engine;
  const InterruptibleEngine interruptible(engine);
  const std::filesystem::path path = calibration_path(cache, engine.identity());
  CalibrationSettings settings;
  settings.threads = options.choice.threads;
  const ProgressSink progress = display.sink();

  Result<Calibration> cached = load_calibration(path);
  const bool usable = cached && cached->model == engine.identity().model && cached->engine == engine.identity().engine;
  Calibration calibration;
  if (usable && !options.force) {
    calibration = *std::move(cached);
  } else {
    MODELD_TRY_VOID(check_cache(path));
    MODELD_TRY(calibration, calibrate_heads(engine, settings, progress, &interrupt_flag()));
    display.finish();
    MODELD_TRY_VOID(save_calibration(path, calibration));
  }
  if (options.reading && !calibration.reading_measured) {
    std::size_t noted = calibration.rows.size();
    const auto save = [&](const Calibration& so_far) {
      display.finish();
      for (; noted < so_far.rows.size(); ++noted) {
        const Calibration::Row& row = so_far.rows[noted];
        display.note(fmt::format("{} of {} right: {}", row.right, row.asked, policy_text(row.policy)));
      }
      return save_calibration(path, so_far);
    };
    MODELD_TRY_VOID(calibrate_reading(engine, calibration, settings, save, progress, &interrupt_flag()));
    display.finish();
    if (!calibration.reading_measured) display.note("The time is up; run the same command again to measure the rest.");
  }
  display.note(fmt::format("Kept in {}", path.string()));
  fmt::print("{}", options.json ? to_json(calibration) + "\n" : calibration_text(calibration, engine.geometry()));
  return {};
}

}  // namespace

Command add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "Find a model's retrieval heads, and with --reading how it reads best; cached per model");
  command->add_option("model", options->choice.model, "The model, a GGUF file")->required()->type_name("MODEL");
  command->add_flag("--heads-only", options->heads_only, "Only the heads (a few minutes); this is the default");
  command->add_flag("--reading", options->reading,
                    "Measure reading policies, too (about ten minutes a run; goes on where it stopped)");
  command->add_flag("--force", options->force, "Measure again what is cached");
  command->add_flag("--json", options->json, "Print the calibration as one JSON object");
  command->add_flag("--quiet", options->quiet, "No progress and no notes on stderr");
  add_threads_flag(*command, options->choice);
  return {command, [options](const Invocation& invocation) {
            ProgressDisplay display(progress_style(options->quiet));
            const Status status = calibrate(*options, invocation.engine, display);
            display.finish();
            return status ? kExitSuccess : end_with(status.error(), options->json);
          }};
}

}  // namespace modeld
