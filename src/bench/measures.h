// The parts of the benchmark. Each returns rows for the table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/command.h"
#include "eval/corpus.h"

namespace modeld {

struct BenchRow {
  std::string name;
  double value = 0.0;
  std::string unit;  // "" for ratios
  /// What the value is held against, as text ("at least 0.95") and whether it is met.
  std::string bound;
  std::optional<bool> met;
};
BenchRow at_least(std::string name, double value, double bound, std::string unit = "");
BenchRow at_most(std::string name, double value, double bound, std::string unit = "");

struct BenchJob {
  Engine& engine;
  const Calibration& calibration;
  const BenchOptions& options;
  const std::string& text;
  const TokenOffsets& offsets;
  const ProgressSink& progress;
  const CancelFlag* cancel = nullptr;

  /// Text between two token counts.
  [[nodiscard]] std::string_view slice(std::int64_t from, std::int64_t to) const;
  [[nodiscard]] std::int64_t store_bytes(std::int64_t tokens) const;
  [[nodiscard]] SessionSettings settings() const;
};

/// When a stream had which length: seconds of ingest, without what lies between ingests.
class Timeline {
 public:
  void add(double tokens, double seconds);
  /// Seconds at a length, between two points on the line through them. REQUIRES at least two points around it.
  [[nodiscard]] double at(double tokens) const;
  /// Mean tokens/s of `count` slices of `slice` tokens from `from` on.
  [[nodiscard]] double speed(double from, double slice, int count) const;

 private:
  std::vector<std::pair<double, double>> points_;
};

/// What the stream measures, for the parts that compare with it.
struct StreamResult {
  std::vector<BenchRow> rows;
  double ingest_seconds = 0.0;
  /// Of one question at full length: all of its retrieval, and the same question without retrieval.
  double retrieval_seconds = 0.0;
  double plain_question_seconds = 0.0;
};
/// One long stream: prefill by depth, decode by length, a question's cost, predictions, memory.
Result<StreamResult> bench_stream(const BenchJob& job);

/// Prefill by ingest mode, and the work of retrieval beside sinks and window alone.
Result<std::vector<BenchRow>> bench_modes(const BenchJob& job, const StreamResult& stream);

/// The engine's own library: prefill and decode by length; and what modeld adds in exact mode.
Result<std::vector<BenchRow>> bench_plain(const BenchJob& job, PlainModel& plain);

}  // namespace modeld
