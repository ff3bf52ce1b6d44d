// modeld describe: what a model is and what would fit, before anything is loaded.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "recall/calibration.h"
#include "recall/key_index.h"
#include "session/calibrate.h"

namespace modeld {
namespace {

using Json = nlohmann::ordered_json;

// The index may take this share of the KV bytes per token at f16 (design: recall).
constexpr double kIndexShare = 0.03;

struct DescribeOptions {
  ModelChoice choice;
  bool json = false;
  bool loaded = false;
};

struct Fit {
  KvType type = KvType::f16;
  Result<Budget> budget;
};

std::vector<Fit> fits_of(const ModelDescription& description, const ModelChoice& choice) {
  std::vector<Fit> fits;
  fits.reserve(std::size(kKvTypes));
  for (const KvType type : kKvTypes) fits.push_back({type, budget_for(description, choice, type)});
  return fits;
}

// No more than this; what calibration really chooses is a whole number of heads below it.
std::int64_t index_bytes_limit(const ModelGeometry& geometry) {
  return static_cast<std::int64_t>(kIndexShare * static_cast<double>(geometry.kv_bytes_per_token(KvType::f16)));
}

std::string layer_text(const LayerGeometry& layer) {
  const char* style = layer.rope.style == RopeStyle::none   ? "none"
                      : layer.rope.style == RopeStyle::norm ? "norm"
                                                            : "neox";
  return fmt::format("{} heads, {} KV heads, key {}, value {}, {}, rope {} of {} dimensions, base {}, scale {}",
                     layer.heads, layer.kv_heads, layer.key_dim, layer.value_dim,
                     layer.window > 0 ? fmt::format("window of {}", layer.window) : std::string("global"), style,
                     layer.rope.dims, layer.rope.freq_base, layer.rope.freq_scale);
}

/// Runs of equal layers, one line each.
std::string layers_text(const ModelGeometry& geometry) {
  std::string text;
  const auto& layers = geometry.layers;
  for (std::size_t begin = 0; begin < layers.size();) {
    std::size_t end = begin + 1;
    while (end < layers.size() && layers[end] == layers[begin]) ++end;
    const std::string names = end - begin == 1 ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, end - 1);
    text += fmt::format("  layer {:<9}{}\n", names, layer_text(layers[begin]));
    begin = end;
  }
  return text;
}

std::string fit_text(const Fit& fit) {
  if (!fit.budget)
    return fmt::format("  {:<5} {}: {}\n", to_text(fit.type), code_name(fit.budget.error().code),
                       fit.budget.error().message);
  const Budget& b = *fit.budget;
  return fmt::format("  {:<5} {} a token: {} tokens hot, {} in exact mode; memory would allow {}\n", to_text(fit.type),
                     bytes_text(b.kv_bytes_per_token), count_text(b.hot_tokens), count_text(b.exact_tokens),
                     count_text(b.device_tokens));
}

std::string describe_text(const ModelDescription& description, const ModelChoice& choice,
                          const std::vector<Fit>& fits) {
  const ModelGeometry& g = description.geometry;
  std::size_t windowed = 0;
  for (const LayerGeometry& layer : g.layers) windowed += layer.window > 0 ? 1 : 0;
  std::string text =
      fmt::format("{} ({}), {} of weights, {}\n", g.name.empty() ? choice.model.filename().string() : g.name,
                  g.architecture, bytes_text(static_cast<std::int64_t>(g.weight_bytes)),
                  g.has_chat_template ? "with a chat template" : "without a chat template");
  if (g.trained_window > 0) text += fmt::format("Trained window {} tokens\n", count_text(g.trained_window));
  if (!g.layers.empty())
    text += fmt::format("{} layers: {} global, {} windowed\n", g.layers.size(), g.layers.size() - windowed, windowed);
  text += layers_text(g);
  text += "Memory\n";
  for (const DeviceMemory& device : description.devices)
    text +=
        fmt::format("  {}: {} free of {}{}\n", device.name, bytes_text(device.free_bytes),
                    bytes_text(device.total_bytes), &device == &description.device() ? "; KV and weights go here" : "");
  if (check_usable(g)) {
    text += fmt::format("  compute buffers: {}\n", bytes_text(description.compute_bytes));
    text += "KV and what fits, by number format\n";
    for (const Fit& fit : fits) text += fit_text(fit);
    for (const Fit& fit : fits)
      if (fit.type == choice.kv_type && fit.budget)
        text += fmt::format("Parked in host memory: up to {}\n", bytes_text(fit.budget->cold_bytes));
    text += fmt::format("Recall index: at most {} a token ({:.0f} % of the KV at f16)\n",
                        bytes_text(index_bytes_limit(g)), kIndexShare * 100.0);
  }
  if (g.unsupported.empty()) text += "Unsupported: nothing\n";
  for (const auto& entry : g.unsupported)
    text += fmt::format("Unsupported: {}: {}{}\n", code_name(entry.code), entry.reason,
                        entry.fatal ? " The model cannot be used." : "");
  return text;
}

Json layer_json(const LayerGeometry& layer) {
  const char* style = layer.rope.style == RopeStyle::none   ? "none"
                      : layer.rope.style == RopeStyle::norm ? "norm"
                                                            : "neox";
  return {{"heads", layer.heads},
          {"kv_heads", layer.kv_heads},
          {"key_dim", layer.key_dim},
          {"value_dim", layer.value_dim},
          {"attention", layer.window > 0 ? "windowed" : "global"},
          {"window", layer.window},
          {"rope",
           {{"style", style},
            {"dims", layer.rope.dims},
            {"freq_base", layer.rope.freq_base},
            {"freq_scale", layer.rope.freq_scale}}}};
}

Json fit_json(const Fit& fit) {
  if (!fit.budget)
    return {{"error", {{"code", code_name(fit.budget.error().code)}, {"message", fit.budget.error().message}}}};
  const Budget& b = *fit.budget;
  return {{"kv_bytes_per_token", b.kv_bytes_per_token},
          {"hot_tokens", b.hot_tokens},
          {"exact_tokens", b.exact_tokens},
          {"device_tokens", b.device_tokens},
          {"device_usable_bytes", b.device_usable_bytes},
          {"device_kv_bytes", b.device_kv_bytes},
          {"host_cold_bytes", b.cold_bytes}};
}

/// Why the model cannot be used as it was asked for.
Status refusal(const ModelDescription& description, const ModelChoice& choice, const std::vector<Fit>& fits) {
  MODELD_TRY_VOID(check_usable(description.geometry));
  for (const Fit& fit : fits)
    if (fit.type == choice.kv_type && !fit.budget) return tl::unexpected(fit.budget.error());
  return {};
}

std::string describe_json(const ModelDescription& description, const ModelChoice& choice,
                          const std::vector<Fit>& fits) {
  const ModelGeometry& g = description.geometry;
  Json json = {{"model", choice.model.string()},     {"name", g.name},
               {"architecture", g.architecture},     {"weight_bytes", g.weight_bytes},
               {"trained_window", g.trained_window}, {"vocabulary", g.vocabulary},
               {"embedding", g.embedding},           {"has_chat_template", g.has_chat_template}};
  json["layers"] = Json::array();
  for (const LayerGeometry& layer : g.layers) json["layers"].push_back(layer_json(layer));
  json["devices"] = Json::array();
  for (const DeviceMemory& device : description.devices)
    json["devices"].push_back({{"name", device.name},
                               {"accelerator", device.accelerator},
                               {"total_bytes", device.total_bytes},
                               {"free_bytes", device.free_bytes}});
  json["compute_bytes"] = description.compute_bytes;
  json["kv_type"] = to_text(choice.kv_type);
  json["kv_types"] = Json::object();
  if (check_usable(g))
    for (const Fit& fit : fits) json["kv_types"][std::string(to_text(fit.type))] = fit_json(fit);
  json["index_bytes_per_token_at_most"] = index_bytes_limit(g);
  json["unsupported"] = Json::array();
  for (const auto& entry : g.unsupported)
    json["unsupported"].push_back({{"code", code_name(entry.code)}, {"reason", entry.reason}, {"fatal", entry.fatal}});
  if (const Status refused = refusal(description, choice, fits); !refused)
    json["error"] = Json::parse(error_json(refused.error()))["error"];
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

struct Description {
  /// Holds the reason of a refusal, too.
  std::string text;
  Status usable;
};

Result<Description> describe(const DescribeOptions& options, const EngineEntry& engine) {
  MODELD_TRY(ModelDescription description, describe_model(engine, options.choice));
  if (options.loaded) {
    // The geometry is then the loaded engine's; memory stays what it was before, for the weights count in the budget.
    MODELD_TRY_VOID(check_usable(description.geometry));
    MODELD_TRY(const std::unique_ptr<Engine> opened, engine.open(options.choice.model, {}, &interrupt_flag()));
    description.geometry = opened->geometry();
  }
  const std::vector<Fit> fits = fits_of(description, options.choice);
  return Description{options.json ? describe_json(description, options.choice, fits) + "\n"
                                  : describe_text(description, options.choice, fits),
                     refusal(description, options.choice, fits)};
}

}  // namespace

Command add_describe(CLI::App& app) {
  auto options = std::make_shared<DescribeOptions>();
  CLI::App* command =
      app.add_subcommand("describe", "Show a model's geometry and what fits this machine, without loading it");
  command->add_option("model", options->choice.model, "The model, a GGUF file")->required()->type_name("MODEL");
  add_memory_flags(*command, options->choice);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--loaded", options->loaded,
                    "Load the model and answer from the loaded engine: the answer is the same");
  return {command, [options](const Invocation& invocation) {
            const Result<Description> described = describe(*options, invocation.engine);
            if (!described) return end_with(described.error(), options->json);
            fmt::print("{}", described->text);
            return described->usable ? kExitSuccess : end_with(described->usable.error(), false);
          }};
}

}  // namespace modeld
