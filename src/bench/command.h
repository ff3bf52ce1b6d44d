// What `modeld bench` does: speeds, as ratios within one run, beside the engine's own library.
//
// Ownership: borrows all that it is given; the engine's context is used and left closed.
// Thread:    one; cancel through the flag, within a second.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "base/progress.h"
#include "engine/engine.h"
#include "engine/plain.h"
#include "recall/calibration.h"
#include "session/session.h"

namespace modeld {

struct BenchOptions {
  /// A text of at least `tokens` tokens.
  std::filesystem::path text;
  /// Length of the long stream; at least 20,000 to have slices to compare.
  std::int64_t tokens = 65536;
  std::int32_t hot_tokens = 2500;
  KvType kv_type = KvType::f16;
  /// Of the cold store; 0: what the text needs.
  std::int64_t cold_bytes = 0;
  std::int32_t threads = 0;
  /// Lengths for the plain library.
  std::vector<std::int32_t> plain_tokens = {1024, 4096, 8192, 16384};
  /// Length of the texts that ingest modes are timed on.
  std::int64_t mode_tokens = 6144;
  /// bench.md and bench.json are written here; empty: nowhere.
  std::filesystem::path output;
  /// For the report's stamp.
  std::string commit;
  std::string command;
};

/// Opens the same model once more, for a stream beside the long one. Called once memory has been
/// measured. Empty: what needs it is left out.
using OpenEngine = std::function<Result<std::unique_ptr<Engine>>()>;

/// Opens the engine's own library with the same model. Called once the long stream has been measured, so that peak
/// memory is that of modeld alone. Empty: what needs it is left out.
using OpenPlain = std::function<Result<std::unique_ptr<PlainModel>>()>;

/// `out` gets a line for each finished part, then the table. Errors: bad_argument, and those of text, engine and
/// session.
Status run_bench(Engine& engine, const OpenEngine& open_engine, const OpenPlain& open_plain,
                 const Calibration& calibration, const BenchOptions& options, const TextSink& out,
                 const ProgressSink& progress = {}, const CancelFlag* cancel = nullptr);

}  // namespace modeld
