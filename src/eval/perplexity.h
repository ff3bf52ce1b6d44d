// Perplexity of real prose by the length of what comes before: what a small hot set keeps of that which attending
// everything gains.
//
// At some places of a text, the probes, the same 512 tokens are scored at every length and in every mode; a longer
// length only begins earlier, so its perplexity can be compared with that of a shorter one. Three modes:
//   dense         the model alone, which attends all that came before;
//   ours          a session that has ingested what came before, and reads blocks for each stretch of 64 tokens;
//   sinks+recent  the same session without retrieval: the streaming baseline.
// A length counts the frame's head, what came before and the scored tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "eval/cells.h"
#include "eval/command.h"
#include "eval/statistics.h"
#include "recall/calibration.h"

namespace modeld {

/// Scored at each probe.
inline constexpr std::int64_t kScoredTokens = 512;

/// One probe at one length in one mode. A finished one is a file of the results' folder.
struct PerplexityCell {
  std::string mode;
  std::int64_t tokens = 0;
  /// From 1.
  std::int32_t probe = 0;
  /// Everything that the results depend on, one line.
  std::string parameters;
  /// Negative log-likelihood of each scored token, natural logarithm.
  std::vector<double> nll;
  /// The most tokens that one of them was predicted from.
  std::int64_t attended_tokens = 0;
  /// Reading what comes before (for both session modes together), and scoring.
  double prepare_seconds = 0.0;
  double seconds = 0.0;
};

/// Where the scored tokens of each probe begin, ascending: `probes` of them, evenly spread over the text so that each
/// has `longest` tokens up to its end, or as many as stand 1024 tokens apart. They begin at line ends where there are
/// any near, which no tokenizer joins tokens across. Empty for a text that is too short.
std::vector<std::int64_t> probe_places(std::string_view text, std::span<const std::size_t> token_bytes,
                                       std::int64_t longest, std::int32_t probes);

/// Measures what the folder does not hold yet, each cell saved as it is done and told to `out` in a line.
/// Errors: bad_argument for lengths that hold no more than what is scored, or that the text does not have; those of
/// text, engine and session.
Result<std::vector<PerplexityCell>> run_perplexity(Engine& engine, const Calibration& calibration,
                                                   const EvalOptions& options, const TextSink& out,
                                                   const ProgressSink& progress, const CancelFlag* cancel);

/// One line: length, mode, probe and its perplexity.
std::string summary(const PerplexityCell& cell);

/// All probes of one length in one mode.
struct PerplexityScore {
  std::string mode;
  std::int64_t tokens = 0;
  std::int64_t probes = 0;
  /// With the 95 % interval of the bootstrap over stretches of 64 tokens, since tokens of one stretch depend on each
  /// other.
  Ratio perplexity;
  std::int64_t attended_tokens = 0;  // of the probe with the most
  double prepare_seconds = 0.0;      // mean
  double seconds = 0.0;              // mean
};
/// One for each length and mode that has cells, by length.
std::vector<PerplexityScore> perplexity_scores(std::span<const PerplexityCell> cells, std::uint64_t seed);

/// A table as markdown, a row a length. Intervals: the bootstrap over stretches of 64 tokens, since tokens of one
/// stretch depend on each other; ratios are paired, over the same tokens.
std::string perplexity_report(std::span<const PerplexityCell> cells, std::uint64_t seed);

}  // namespace modeld
