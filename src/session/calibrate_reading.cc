// The search for the reading policy. Measuring every combination would take hours on a small machine, so it goes one
// choice at a time, each with the others held at the best found so far: how blocks are computed, how many are read, in
// what order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "needles/needles.h"
#include "needles/random.h"
#include "session/calibrate.h"
#include "session/session.h"

namespace modeld {
namespace {

constexpr std::string_view kStage = "measuring reading policies: reading";
constexpr std::string_view kAskStage = "measuring reading policies: asking";
constexpr std::int32_t kHotTokens = 2560;
constexpr std::int32_t kAnswerTokens = 12;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Of each list the first is what is kept unless another is clearly better.

/// Choices that differ from `base` in how blocks are computed.
std::vector<ReadingPolicy> origins(const ReadingPolicy& base) {
  std::vector<ReadingPolicy> result = {base};
  const auto add = [&](KvOrigin origin, std::int32_t run_up, std::int32_t window) {
    ReadingPolicy policy = base;
    policy.origin = origin;
    policy.run_up = run_up;
    policy.stream_window = window;
    result.push_back(policy);
  };
  const ReadingPolicy safe;
  add(KvOrigin::isolated, 0, safe.stream_window);
  add(KvOrigin::streamed, safe.run_up, 512);
  add(KvOrigin::streamed, safe.run_up, 1024);
  return result;
}

std::vector<ReadingPolicy> block_counts(const ReadingPolicy& base) {
  std::vector<ReadingPolicy> result = {base};
  for (const std::int32_t blocks : {1, 2, 8}) {
    result.push_back(base);
    result.back().blocks = blocks;
  }
  return result;
}

std::vector<ReadingPolicy> orders(const ReadingPolicy& base) {
  ReadingPolicy other = base;
  other.order = base.order == BlockOrder::best_last ? BlockOrder::best_first : BlockOrder::best_last;
  return {base, other};
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
  [[nodiscard]] const Calibration::Row* find_row(const ReadingPolicy& policy) const;
  /// Makes sure that there is a row of each choice; false when the time is up before. Choices that differ in the number
  /// of blocks alone share one ingested stream.
  Result<bool> measure_all(std::span<const ReadingPolicy> choices);
  Result<std::unique_ptr<Session>> ingest(ColdStore& store, const ReadingPolicy& policy);
  Result<Calibration::Row> ask_all(Session& session, const ReadingPolicy& policy);
  /// The one of `choices` to go on with; nothing when the time ran out before all were measured.
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
  SeededRandom(settings_.seed + 1001).shuffle(needles);
  std::vector<double> depths;
  depths.reserve(needles.size());
  for (std::size_t i = 0; i < needles.size(); ++i)
    depths.push_back(0.02 + 0.9 * (static_cast<double>(i) + 0.5) / static_cast<double>(needles.size()));
  planted_ = plant(filler_prose(bytes, settings_.seed + 1002), needles, depths);
  MODELD_TRY(const std::vector<Token> all, engine_.tokenize(planted_.text, false, false));
  stream_tokens_ = static_cast<std::int64_t>(all.size());
  return {};
}

Result<std::unique_ptr<Session>> ReadingSearch::ingest(ColdStore& store, const ReadingPolicy& policy) {
  SessionSettings session_settings;
  session_settings.context = ContextMode::focus;
  session_settings.hot_tokens = std::min(kHotTokens, engine_.geometry().trained_window);
  session_settings.answer_tokens = kAnswerTokens;
  session_settings.threads = settings_.threads;
  session_settings.reading = policy;
  MODELD_TRY(std::unique_ptr<Session> session, Session::create(engine_, store, calibration_, session_settings));
  const std::array parts = {TextPart{"calibration", planted_.text, SegmentKind::user}};
  MODELD_TRY_VOID(session->append(parts, cancel_));
  const ProgressSink reading = [&](const Progress& p) { report(progress_, kStage, p.done, p.total, p.unit); };
  MODELD_TRY_VOID(session->ingest(reading, cancel_));
  return session;
}

Result<Calibration::Row> ReadingSearch::ask_all(Session& session, const ReadingPolicy& policy) {
  Calibration::Row row;
  row.policy = policy;
  for (const PlantedNeedle& planted : planted_.needles) {
    Question question;
    question.text = planted.needle.question;
    question.answer_prefix = planted.needle.answer_prefix;
    question.answer_tokens_max = kAnswerTokens;
    question.blocks = policy.blocks;
    MODELD_TRY(const Answer answer, session.ask(question, {}, {}, cancel_));
    ++row.asked;
    if (answer_begins(answer.text, planted.needle.answer)) ++row.right;
    report(progress_, kAskStage, static_cast<std::uint64_t>(row.asked), planted_.needles.size(), "questions");
  }
  return row;
}

const Calibration::Row* ReadingSearch::find_row(const ReadingPolicy& policy) const {
  for (const Calibration::Row& row : calibration_.rows)
    if (row.policy == policy) return &row;
  return nullptr;
}

Result<bool> ReadingSearch::measure_all(std::span<const ReadingPolicy> choices) {
  // KV, index and tokens of the whole stream, with room for run-ups and per-block headers.
  const std::int64_t kv_bytes = stream_tokens_ * engine_.geometry().kv_bytes_per_token(KvType::f16);
  ColdStore store(kv_bytes * 3 / 2 + (std::int64_t{16} << 20));
  std::unique_ptr<Session> session;
  ReadingPolicy ingested;
  for (const ReadingPolicy& policy : choices) {
    if (find_row(policy) != nullptr) continue;
    // A row that could not be finished in time would be lost work.
    if (seconds_since(begin_) + slowest_ > settings_.reading_seconds) return false;
    const Clock::time_point begin = Clock::now();
    ReadingPolicy most = policy;
    for (const ReadingPolicy& other : choices) most.blocks = std::max(most.blocks, other.blocks);
    if (!session || !(ingested == most)) {
      session.reset();
      MODELD_TRY(session, ingest(store, most));
      ingested = most;
    }
    MODELD_TRY(Calibration::Row row, ask_all(*session, policy));
    row.seconds = seconds_since(begin);
    slowest_ = std::max(slowest_, row.seconds);
    calibration_.rows.push_back(row);
    calibration_.seconds += row.seconds;
    if (save_) MODELD_TRY_VOID(save_(calibration_));
  }
  return true;
}

Result<std::optional<ReadingPolicy>> ReadingSearch::best_of(const std::vector<ReadingPolicy>& choices) {
  MODELD_TRY(const bool complete, measure_all(choices));
  if (!complete) return std::nullopt;
  std::vector<PolicyScore> scores;
  for (const ReadingPolicy& policy : choices) {
    const Calibration::Row* row = find_row(policy);
    scores.push_back({row->right, row->asked});
  }
  return choices[choose_policy(scores, 0)];
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
