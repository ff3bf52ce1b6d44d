#include "cli/text_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/terminal.h"
#include "source/file_bytes.h"
#include "source/source.h"
#include "source/walk.h"
#include "stream/tokens.h"

namespace modeld {
namespace {

// A token spells about four bytes of text; hardly ever more than eight over a whole text.
constexpr std::uint64_t kLikelyTokenBytes = 4;
constexpr std::uint64_t kLongTokenBytes = 8;
// Bytes of weights that one CPU core reads and multiplies in a second while it prefills.
constexpr double kWeightBytesPerCoreSecond = 1.4e10;

/// Tokens and index of one token at least: one KV head of int8 keys with a scale.
std::int64_t least_bytes_per_token(const ModelGeometry& geometry) {
  std::int32_t width = 0;
  for (const LayerGeometry& layer : geometry.layers) width = std::max(width, layer.key_dim);
  return width + 2 + std::int64_t{sizeof(Token)};
}

}  // namespace

Result<std::uint64_t> text_bytes(const std::vector<std::filesystem::path>& paths, const CancelFlag* cancel) {
  const SourceLimits limits;
  std::uint64_t bytes = 0;
  for (const std::filesystem::path& path : paths) {
    if (path == "-") continue;
    MODELD_TRY(const FileFacts facts, facts_of(path));
    bytes += facts.size;
    if (facts.kind != FileKind::directory) continue;
    MODELD_TRY(const std::vector<FoundFile> files, walk(path, {limits.max_files, limits.max_depth}, cancel));
    for (const FoundFile& file : files) bytes += file.facts.size;
  }
  return bytes;
}

double rough_seconds(std::int64_t tokens, const ModelGeometry& geometry, std::int32_t threads) {
  const auto cores = threads > 0 ? static_cast<double>(threads)
                                 : static_cast<double>(std::max(1U, std::thread::hardware_concurrency()));
  return static_cast<double>(tokens) * static_cast<double>(geometry.weight_bytes) / (kWeightBytesPerCoreSecond * cores);
}

TextEstimate estimate_text(std::uint64_t bytes, const ModelGeometry& geometry, const Budget& budget,
                           std::int32_t threads) {
  TextEstimate estimate;
  estimate.bytes = bytes;
  estimate.tokens = static_cast<std::int64_t>(bytes / kLikelyTokenBytes);
  estimate.kv_bytes = estimate.tokens * budget.kv_bytes_per_token;
  estimate.least_host_bytes = static_cast<std::int64_t>(bytes) +
                              static_cast<std::int64_t>(bytes / kLongTokenBytes) * least_bytes_per_token(geometry);
  estimate.rough_seconds = rough_seconds(estimate.tokens, geometry, threads);
  return estimate;
}

std::uint64_t text_bytes_limit(const ModelGeometry& geometry, const Budget& budget) {
  const double per_byte =
      1.0 + static_cast<double>(least_bytes_per_token(geometry)) / static_cast<double>(kLongTokenBytes);
  return static_cast<std::uint64_t>(static_cast<double>(budget.cold_bytes) / per_byte);
}

std::string estimate_text_line(const TextEstimate& estimate, const Budget& budget) {
  return fmt::format(
      "The text has {}, about {} tokens. Reading it takes very roughly {} on this CPU and makes {} of KV; {} of host "
      "memory may be used.",
      bytes_text(static_cast<std::int64_t>(estimate.bytes)), count_text(estimate.tokens),
      duration_text(estimate.rough_seconds), bytes_text(estimate.kv_bytes), bytes_text(budget.cold_bytes));
}

Status check_text_fits(const TextEstimate& estimate, const Budget& budget) {
  if (estimate.least_host_bytes <= budget.cold_bytes) return {};
  return fail(
      ErrorCode::text_too_large,
      fmt::format("The text of {}, about {} tokens, needs at least {} of host memory for itself, its tokens and its "
                  "index, but {} may be used. Give a larger --host-budget or less text.",
                  bytes_text(static_cast<std::int64_t>(estimate.bytes)), count_text(estimate.tokens),
                  bytes_text(estimate.least_host_bytes), bytes_text(budget.cold_bytes)),
      {{"text_bytes", static_cast<std::int64_t>(estimate.bytes)},
       {"tokens", estimate.tokens},
       {"needed_bytes", estimate.least_host_bytes},
       {"host_budget_bytes", budget.cold_bytes}});
}

}  // namespace modeld
