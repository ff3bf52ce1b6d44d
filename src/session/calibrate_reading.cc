// The search for the reading policy. Measuring every combination would take hours on a small machine, so it goes one
// choice at a time, each with the others held at the best found so far: how blocks are computed, how many are read, in
// what order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>

#include "needles/needles.h"
#include "session/calibrate.h"
#include "session/session.h"

namespace modeld {
namespace {

constexpr std::string_view kStage = "measuring reading policies";
constexpr std::int32_t kHotTokens = 2560;
constexpr std::int32_t kAnswerTokens = 12;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Choices that differ from `base` in how blocks are computed; cheapest first, so that ties go to the cheaper one.
std::vector<ReadingPolicy> origins(const ReadingPolicy& base) {
  std::vector<ReadingPolicy> result;
  const auto add = [&](KvOrigin origin, std::int32_t run_up, std::int32_t window) {
    ReadingPolicy policy = base;
    policy.origin = origin;
    policy.run_up = run_up;
    policy.stream_window = window;
    result.push_back(policy);
  };
  const ReadingPolicy safe;
  add(KvOrigin::isolated, 0, safe.stream_window);
  add(KvOrigin::isolated, safe.run_up, safe.stream_window);
  add(KvOrigin::streamed, safe.run_up, 512);
  add(KvOrigin::streamed, safe.run_up, 1024);
  return result;
}

std::vector<ReadingPolicy> block_counts(const ReadingPolicy& base) {
  std::vector<ReadingPolicy> result;
  for (const std::int32_t blocks : {1, 2, 4, 8}) {
    result.push_back(base);
    result.back().blocks = blocks;
  }
  return result;
}

std::vector<ReadingPolicy> orders(const ReadingPolicy& base) {
  std::vector<ReadingPolicy> result;
  for (const BlockOrder order : {BlockOrder::best_last, BlockOrder::best_first}) {
    result.push_back(base);
    result.back().order = order;
  }
  return result;
}

class ReadingSearch {
 public:
  ReadingSearch(Engine& engine, Calibration& calibration, const CalibrationSettings& settings,
                const std::function<Status(const Calibration&)>& save, const ProgressSink& progress,
                const CancelFlag* cancel)
      : engine_(engine),
        calibration_(calibration),
        settings_(settings),
        save_(save),
        progress_(progress),
        cancel_(cancel) {}

  Status run();

 private:
  Status write_stream();
  /// Measures `policy` unless there is a row of it. Nothing when the time is up.
  Result<std::optional<Calibration::Row>> row_of(const ReadingPolicy& policy);
  Result<Calibration::Row> measure(const ReadingPolicy& policy);
  /// The best of `choices`; nothing when the time ran out before all were measured.
  Result<std::optional<ReadingPolicy>> best_of(const std::vector<ReadingPolicy>& choices);

  Engine& engine_;
  Calibration& calibration_;
  const CalibrationSettings& settings_;
  const std::function<Status(const Calibration&)>& save_;
  const ProgressSink& progress_;
  const CancelFlag* cancel_;
  Clock::time_point begin_ = Clock::now();
  PlantedText planted_;
  std::int64_t stream_tokens_ = 0;
  double slowest_ = 0.0;
};

Status ReadingSearch::write_stream() {
  const std::string sample = filler_prose(4096, settings_.seed);
  MODELD_TRY(const std::vector<Token> tokens, engine_.tokenize(sample, false, false));
  if (tokens.empty())
    return fail(ErrorCode::calibration_failed, "The model's tokenizer gave no tokens for plain prose.");
  const std::size_t bytes = sample.size() * static_cast<std::size_t>(settings_.stream_tokens) / tokens.size();
  const auto questions = static_cast<std::size_t>(settings_.stream_questions);
  std::vector<Needle> needles;
  // Other facts than those that chose the heads: another seed.
  for (const NeedleKind kind : {NeedleKind::single, NeedleKind::lookalike, NeedleKind::paraphrase}) {
    const std::size_t count = std::min(std::max<std::size_t>(1, questions / 3), needles_max(kind));
    const std::vector<Needle> made = make_needles(kind, count, settings_.seed + 1000);
    needles.insert(needles.end(), made.begin(), made.end());
  }
  std::mt19937_64 random(settings_.seed + 1001);
  std::shuffle(needles.begin(), needles.end(), random);
  std::vector<double> depths;
  for (std::size_t i = 0; i < needles.size(); ++i)
    depths.push_back(0.02 + 0.9 * (static_cast<double>(i) + 0.5) / static_cast<double>(needles.size()));
  planted_ = plant(filler_prose(bytes, settings_.seed + 1002), needles, depths);
  MODELD_TRY(const std::vector<Token> all, engine_.tokenize(planted_.text, false, false));
  stream_tokens_ = static_cast<std::int64_t>(all.size());
  return {};
}

Result<Calibration::Row> ReadingSearch::measure(const ReadingPolicy& policy) {
  const Clock::time_point begin = Clock::now();
  const ModelGeometry& geometry = engine_.geometry();
  // KV, index and tokens of the whole stream, with room for run-ups and per-block headers.
  const std::int64_t bytes =
      stream_tokens_ * geometry.kv_bytes_per_token(KvType::f16) * 3 / 2 + (std::int64_t{16} << 20);
  ColdStore store(bytes);
  SessionSettings session_settings;
  session_settings.context = ContextMode::focus;
  session_settings.hot_tokens = std::min(kHotTokens, geometry.trained_window);
  session_settings.answer_tokens = kAnswerTokens;
  session_settings.threads = settings_.threads;
  session_settings.reading = policy;
  MODELD_TRY(const std::unique_ptr<Session> session, Session::create(engine_, store, calibration_, session_settings));
  const std::array parts = {TextPart{"calibration", planted_.text, SegmentKind::user}};
  MODELD_TRY_VOID(session->append(parts, cancel_));
  const auto questions = static_cast<std::uint64_t>(planted_.needles.size());
  // A question counts as 256 tokens: what it takes on a small CPU.
  const std::uint64_t total = static_cast<std::uint64_t>(stream_tokens_) + questions * 256;
  const ProgressSink reading = [&](const Progress& p) {
    const std::uint64_t of = std::max<std::uint64_t>(1, p.total);
    report(progress_, kStage, std::min(p.done, of) * static_cast<std::uint64_t>(stream_tokens_) / of, total, "tokens");
  };
  MODELD_TRY_VOID(session->ingest(reading, cancel_));
  Calibration::Row row;
  row.policy = policy;
  for (std::uint64_t i = 0; i < questions; ++i) {
    const Needle& needle = planted_.needles[i].needle;
    Question question;
    question.text = needle.question;
    question.answer_prefix = needle.answer_prefix;
    question.answer_tokens_max = kAnswerTokens;
    MODELD_TRY(const Answer answer, session->ask(question, {}, {}, cancel_));
    ++row.asked;
    if (answer_begins(answer.text, needle.answer)) ++row.right;
    report(progress_, kStage, static_cast<std::uint64_t>(stream_tokens_) + (i + 1) * 256, total, "tokens");
  }
  row.seconds = seconds_since(begin);
  return row;
}

Result<std::optional<Calibration::Row>> ReadingSearch::row_of(const ReadingPolicy& policy) {
  for (const Calibration::Row& row : calibration_.rows)
    if (row.policy == policy) return row;
  // A row that could not be finished in time would be lost work.
  if (seconds_since(begin_) + slowest_ > settings_.reading_seconds) return std::nullopt;
  MODELD_TRY(const Calibration::Row row, measure(policy));
  slowest_ = std::max(slowest_, row.seconds);
  calibration_.rows.push_back(row);
  calibration_.seconds += row.seconds;
  if (save_) MODELD_TRY_VOID(save_(calibration_));
  return row;
}

Result<std::optional<ReadingPolicy>> ReadingSearch::best_of(const std::vector<ReadingPolicy>& choices) {
  std::optional<Calibration::Row> best;
  for (const ReadingPolicy& policy : choices) {
    MODELD_TRY(const std::optional<Calibration::Row> row, row_of(policy));
    if (!row) return std::nullopt;
    if (!best || row->right > best->right) best = row;
  }
  return best->policy;
}

Status ReadingSearch::run() {
  MODELD_TRY_VOID(write_stream());
  ReadingPolicy policy;
  for (const auto& choices : {origins, block_counts, orders}) {
    MODELD_TRY(const std::optional<ReadingPolicy> best, best_of(choices(policy)));
    if (!best) return {};
    policy = *best;
  }
  calibration_.reading = policy;
  calibration_.reading_measured = true;
  if (save_) MODELD_TRY_VOID(save_(calibration_));
  return {};
}

}  // namespace

Status calibrate_reading(Engine& engine, Calibration& calibration, const CalibrationSettings& settings,
                         const std::function<Status(const Calibration&)>& save, const ProgressSink& progress,
                         const CancelFlag* cancel) {
  if (settings.stream_questions < 1 || settings.stream_tokens < 1024)
    return fail(ErrorCode::bad_argument, "The reading policy needs a stream of 1024 tokens and one question.");
  const Status status = ReadingSearch(engine, calibration, settings, save, progress, cancel).run();
  engine.close_context();
  return status;
}

}  // namespace modeld
