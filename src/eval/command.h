// What `modeld eval` and `modeld demo` do. The command line opens the engine, finds the calibration, and shows progress
// and text.
//
// Ownership: borrow engine and calibration; the engine's context is used and left closed.
// Thread:    one; cancel through the flag, within a second.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "base/progress.h"
#include "engine/engine.h"
#include "recall/calibration.h"
#include "session/session.h"

namespace modeld {

struct EvalOptions {
  /// Prose: a file. Empty: no prose tasks.
  std::filesystem::path text;
  /// Source code: a directory. Empty: no code tasks.
  std::filesystem::path code;
  /// Python source: a directory, asked about what the code itself states. Empty: no such tasks.
  std::filesystem::path python;
  /// Also texts of nothing but keys and values: UUIDs in JSON, and numbers by name.
  bool pairs = false;
  /// Also texts of repeated filler with numbers and chains of variables.
  bool noise = false;
  /// Also lists of words, asked as a whole: the most common words of a numbered list, the most frequent coded words.
  bool words = false;
  /// Positions of the pass key in repeated filler, each a text of its own; 0: no such task.
  std::int32_t passkeys = 10;
  /// Length of each text.
  std::int64_t tokens = 65536;
  /// Kinds of facts that are planted into prose and source code (quiz_kinds()).
  std::vector<std::string> kinds = {"single", "lookalike", "paraphrase"};
  /// Questions a kind and text; 0: no questions but those for pass keys.
  std::int32_t questions = 52;
  /// Texts of each corpus, planted with other seeds; one row for all of them. From the second on only fresh and ours
  /// are run, to narrow their intervals.
  std::int32_t texts = 1;
  /// Questions a text for the dense modes, and their lengths; the text cut to the window takes as many a kind.
  std::int32_t dense_questions = 20;
  std::vector<std::int32_t> dense_tokens = {12288, 16384};
  /// Lengths at which the perplexity of the text is measured (perplexity.h), the dense mode up to the largest of
  /// dense_tokens; none: it is not measured.
  std::vector<std::int64_t> perplexity;
  /// Places of the text where it is measured.
  std::int32_t probes = 4;
  /// "fresh", "ours", "map", "sinks+recent", "truncated", "dense", "oracle"; empty: all.
  std::vector<std::string> modes;
  /// Questions a kind that are also answered freely, for fresh and ours; 0: none.
  std::int32_t free_questions = 20;
  std::int32_t hot_tokens = 2500;
  KvType kv_type = KvType::f16;
  /// Of parked KV; nothing: as kv_type.
  std::optional<KvType> cold_type;
  /// Of the cold store; 0: what the text needs.
  std::int64_t cold_bytes = 0;
  std::int32_t threads = 0;
  RereadPolicy reread;
  /// Further passages that those found lead to (SessionSettings::follow).
  std::int32_t follow = 4;
  /// May be null.
  Embedder* embedder = nullptr;
  std::uint64_t seed = 1;
  /// Finished cells, the report (report.md) and its picture (report.svg) are kept here.
  std::filesystem::path output;
  /// What run_eval() says is one JSON object at its end (score_json.h).
  bool json = false;
  /// For the report's stamp.
  std::string commit;
  std::string command;
};

/// Runs what is not there yet, and writes report and picture. `out` gets a line for each finished cell, then the
/// report; or the JSON object alone.
/// Errors: bad_argument (an unknown mode is answered with the right ones), and those of texts, engine and session.
Status run_eval(Engine& engine, const Calibration& calibration, const EvalOptions& options, const TextSink& out,
                const ProgressSink& progress = {}, const CancelFlag* cancel = nullptr);

struct DemoOptions {
  std::filesystem::path text;
  /// At least eight times the window makes the point.
  std::int64_t tokens = 65536;
  std::int32_t dense_tokens = 12288;
  std::int32_t hot_tokens = 2500;
  KvType kv_type = KvType::f16;
  std::int64_t cold_bytes = 0;
  std::int32_t threads = 0;
  /// May be null.
  Embedder* embedder = nullptr;
  std::uint64_t seed = 1;
  std::string commit;
  std::string command;
};

/// The newcomer's report, written to `out` as it comes. Errors as run_eval().
Status run_demo(Engine& engine, const Calibration& calibration, const DemoOptions& options, const TextSink& out,
                const ProgressSink& progress = {}, const CancelFlag* cancel = nullptr);

}  // namespace modeld
