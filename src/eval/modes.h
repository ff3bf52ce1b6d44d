// The ways a question can be answered, side by side. Each runner fills cells that are not there yet and hands each to
// `done`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "eval/cells.h"
#include "eval/command.h"
#include "eval/tasks.h"
#include "recall/calibration.h"

namespace modeld {

inline constexpr std::string_view kFresh = "fresh";
inline constexpr std::string_view kOurs = "ours";
inline constexpr std::string_view kSinksRecent = "sinks+recent";
inline constexpr std::string_view kTruncated = "truncated";
inline constexpr std::string_view kDense = "dense";
inline constexpr std::string_view kOracle = "oracle";
inline constexpr std::string_view kMap = "map";
/// All modes, as options name them.
std::vector<std::string_view> eval_modes();
/// Whether a mode is for such questions: about the whole text there is no passage that it could be given, and for one
/// passage the whole text is not read.
bool has_meaning(std::string_view mode, bool whole_text);

/// Tokens of the passage that a question is asked of in mode fresh.
inline constexpr std::int64_t kPassageTokens = 300;

/// What the runners share.
struct EvalJob {
  Engine& engine;
  const Calibration& calibration;
  const EvalOptions& options;
  const EvalText& text;
  /// Cells that are wanted and missing; a runner takes those of its modes.
  std::vector<Cell> missing;
  std::function<Status(const Cell&)> done;
  const ProgressSink& progress;
  const CancelFlag* cancel = nullptr;
};

/// "prose.single" of a text and a kind.
std::string task_name(const EvalText& text, std::string_view kind);
/// Everything that results in this mode depend on, one line.
std::string parameters_of(const EvalJob& job, std::string_view mode);

/// A reading policy on one line.
std::string policy_text(const ReadingPolicy& policy);
/// How a session is opened, and the bytes of its cold store, for a text of so many tokens.
SessionSettings session_settings(const EvalOptions& options);
std::int64_t store_bytes(const Engine& engine, const EvalOptions& options, std::int64_t tokens);

/// The passage alone, in a fresh short context.
Status run_fresh(const EvalJob& job);
/// ours, map, sinks+recent and oracle: one session, one ingest.
Status run_session_modes(const EvalJob& job);
/// truncated and dense: one context, computed once, asked at each length.
Status run_dense_modes(const EvalJob& job);

}  // namespace modeld
