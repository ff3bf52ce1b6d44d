// One stream that grows to its full length in three steps, and is asked the same questions after the last two.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/stopwatch.h"
#include "bench/measures.h"
#include "eval/machine.h"

namespace modeld {
namespace {

constexpr std::int64_t kMiddle = 16384;
constexpr double kSlice = 2048.0;
constexpr int kSlices = 5;
/// Bytes beside hot set, store, index and weights that the process may take.
constexpr double kAllowance = 200e6;

struct Turn {
  std::string name;
  double predicted = 0.0;
  double actual = 0.0;
};

struct Asked {
  double question_ms = 0.0;
  Seconds parts;  // of the median question
  double plain_question_ms = 0.0;
};

class StreamBench {
 public:
  explicit StreamBench(const BenchJob& job) : job_(job), store_(job.store_bytes(job.options.tokens)) {}

  Result<StreamResult> run() {
    MODELD_TRY(session_, Session::create(job_.engine, store_, job_.calibration, job_.settings()));
    MODELD_TRY_VOID(grow(0, kShortStream));
    MODELD_TRY_VOID(grow(kShortStream, kMiddle));
    MODELD_TRY(const Asked at_middle, ask_all());
    MODELD_TRY_VOID(grow(kMiddle, job_.options.tokens));
    MODELD_TRY(const Asked at_end, ask_all());
    prefill_rows();
    question_rows("16k", at_middle);
    question_rows("the full stream", at_end);
    prediction_rows();
    memory_rows();
    // Last, so that peak memory is that of one engine.
    if (job_.open_engine) {
      MODELD_TRY(const std::vector<BenchRow> decode, bench_decode(job_, *session_));
      result_.rows.insert(result_.rows.end(), decode.begin(), decode.end());
    }
    result_.ingest_seconds = ingest_seconds_;
    result_.retrieval_seconds = at_end.question_ms / 1e3;
    result_.plain_question_seconds = at_end.plain_question_ms / 1e3;
    return std::move(result_);
  }

 private:
  Status grow(std::int64_t from, std::int64_t to) {
    const std::array parts = {TextPart{"text", std::string(job_.slice(from, to)), SegmentKind::user}};
    MODELD_TRY_VOID(session_->append(parts, job_.cancel));
    MODELD_TRY(const IngestPlan plan, session_->plan());
    const double before = ingest_seconds_;
    const Stopwatch watch;
    const ProgressSink note = [&](const Progress& p) {
      timeline_.add(static_cast<double>(p.done), before + watch.seconds());
      report(job_.progress, "one long stream", p.done, static_cast<std::uint64_t>(job_.options.tokens), p.unit);
    };
    MODELD_TRY_VOID(session_->ingest(note, job_.cancel));
    const double seconds = watch.seconds();
    ingest_seconds_ += seconds;
    turns_.push_back({fmt::format("reading {} tokens", to - from), plan.predicted_seconds, seconds});
    return {};
  }

  Result<Asked> ask_all() {
    Asked asked;
    std::vector<std::pair<double, Seconds>> costs;
    std::vector<double> plain;
    for (const std::string_view text : kBenchQuestions) {
      Question question;
      question.text = text;
      question.answer_tokens_max = 2;
      const Stopwatch watch;
      MODELD_TRY(const Answer answer, session_->ask(question, {}, {}, job_.cancel));
      turns_.push_back({fmt::format("a question at {} tokens", session_->stream_tokens()), answer.predicted_seconds,
                        watch.seconds() - answer.seconds.decode});
      costs.emplace_back(answer.seconds.retrieval(), answer.seconds);
      question.retrieve = false;
      question.answer_tokens_max = 1;
      MODELD_TRY(const Answer without, session_->ask(question, {}, {}, job_.cancel));
      plain.push_back(without.seconds.question * 1e3);
    }
    std::sort(costs.begin(), costs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    asked.parts = costs[costs.size() / 2].second;
    asked.question_ms = costs[costs.size() / 2].first * 1e3;
    asked.plain_question_ms = median(plain);
    return asked;
  }

  void prefill_rows() {
    const double early = timeline_.speed(static_cast<double>(kShortStream), kSlice, kSlices);
    const double late = timeline_.speed(static_cast<double>(job_.options.tokens) - kSlice * kSlices, kSlice, kSlices);
    result_.rows.push_back({"prefill of the whole stream",
                            static_cast<double>(session_->stream_tokens()) / ingest_seconds_,
                            "tokens/s",
                            "",
                            {}});
    result_.rows.push_back({"prefill, five slices of 2k at 6-16k", early, "tokens/s", "", {}});
    result_.rows.push_back({"prefill, five slices of 2k at the end", late, "tokens/s", "", {}});
    result_.rows.push_back(at_least("prefill, end ÷ 6-16k", late / early, 0.95));
  }

  void question_rows(const std::string& where, const Asked& asked) {
    result_.rows.push_back(
        {fmt::format("question at {}: all before the first word", where), asked.question_ms, "ms", "", {}});
    const std::array parts = {std::pair{"probe pass", asked.parts.probe}, std::pair{"scoring", asked.parts.scoring},
                              std::pair{"admission", asked.parts.admission},
                              std::pair{"second pass", asked.parts.question}};
    for (const auto& [name, seconds] : parts)
      result_.rows.push_back({fmt::format("question at {}: {}", where, name), seconds * 1e3, "ms", "", {}});
  }

  void prediction_rows() {
    const auto slowest = std::max_element(turns_.begin(), turns_.end(),
                                          [](const Turn& a, const Turn& b) { return a.actual < b.actual; });
    result_.rows.push_back({fmt::format("slowest turn ({})", slowest->name), slowest->actual, "s", "", {}});
    result_.rows.push_back(
        {"its prediction", slowest->predicted, "s", slowest->predicted > 0 ? "" : "nothing was known yet", {}});
  }

  void memory_rows() {
    const EngineMemory memory = job_.engine.memory();
    const StoreUsage usage = store_.usage();
    const auto expected = static_cast<double>(memory.weights + memory.kv + usage.used_bytes()) + kAllowance;
    result_.rows.push_back({"weights", static_cast<double>(memory.weights) / 1e6, "MB", "", {}});
    result_.rows.push_back({"hot KV", static_cast<double>(memory.kv) / 1e6, "MB", "", {}});
    result_.rows.push_back({"cold store with index", static_cast<double>(usage.used_bytes()) / 1e6, "MB", "", {}});
    result_.rows.push_back({"recall index, share of the KV bytes",
                            100.0 * static_cast<double>(usage.charged_bytes) / static_cast<double>(usage.payload_bytes),
                            "%",
                            "",
                            {}});
    result_.rows.push_back(
        at_most("peak resident memory", static_cast<double>(peak_resident_bytes()) / 1e6, expected / 1e6, "MB"));
  }

  const BenchJob& job_;
  ColdStore store_;
  std::unique_ptr<Session> session_;
  Timeline timeline_;
  std::vector<Turn> turns_;
  double ingest_seconds_ = 0.0;
  StreamResult result_;
};

}  // namespace

Result<StreamResult> bench_stream(const BenchJob& job) { return StreamBench(job).run(); }

}  // namespace modeld
