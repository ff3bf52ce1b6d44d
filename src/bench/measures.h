// The parts of the benchmark. Each returns rows for the table.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  const OpenEngine& open_engine;
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
  /// A session over the text's first `tokens` tokens, not yet read. Errors: the session's.
  [[nodiscard]] Result<std::unique_ptr<Session>> session(Engine& with, ColdStore& store,
                                                         const SessionSettings& settings, std::int64_t tokens) const;
};

/// REQUIRES at least one.
double median(std::vector<double> values);

/// Length of the short stream that the long one is compared with.
inline constexpr std::int64_t kShortStream = 6144;

inline constexpr std::array<std::string_view, 6> kBenchQuestions = {
    "Tell me at length what happens in this text.",       "Who is spoken of in this text, and what do they do?",
    "List all the places that the text names.",           "What does the text say about water?",
    "Describe the people in the text one after another.", "Which numbers does the text give, and for what?"};

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
/// One long stream: prefill by depth, decode beside a short one, a question's cost, predictions, memory.
Result<StreamResult> bench_stream(const BenchJob& job);

/// Decode behind a long stream beside decode behind a short one, in turns. REQUIRES job.open_engine.
Result<std::vector<BenchRow>> bench_decode(const BenchJob& job, Session& long_stream);

/// Prefill by ingest mode, and the work of retrieval beside sinks and window alone.
Result<std::vector<BenchRow>> bench_modes(const BenchJob& job, const StreamResult& stream);

/// The engine's own library: prefill and decode by length; and what modeld adds in exact mode.
Result<std::vector<BenchRow>> bench_plain(const BenchJob& job, PlainModel& plain);

}  // namespace modeld
