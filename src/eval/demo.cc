// The demonstration: the same six questions to the model alone and to modeld, over one text that is eight times the
// window.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/stopwatch.h"
#include "eval/command.h"
#include "eval/dense.h"
#include "eval/machine.h"
#include "eval/tasks.h"
#include "needles/random.h"

namespace modeld {
namespace {

constexpr std::size_t kBytesPerToken = 8;
constexpr double kMiB = 1024.0 * 1024.0;
/// Facts that stand between the window's end and the dense run's, so that the dense run is asked what it was given.
constexpr std::size_t kDenseFacts = 2;

struct DemoAnswer {
  std::string text;
  bool right = false;
};

class Demo {
 public:
  Demo(Engine& engine, const Calibration& calibration, const DemoOptions& options, const TextSink& out,
       const ProgressSink& progress, const CancelFlag* cancel)
      : engine_(engine),
        calibration_(calibration),
        options_(options),
        out_(out),
        progress_(progress),
        cancel_(cancel) {}

  Status run() {
    MODELD_TRY_VOID(prepare());
    MODELD_TRY_VOID(model_alone());
    MODELD_TRY_VOID(with_modeld());
    summary();
    return {};
  }

 private:
  void say(const std::string& text) const {
    if (out_) out_(text);
  }
  [[nodiscard]] std::int64_t window() const { return engine_.geometry().trained_window; }
  [[nodiscard]] std::int64_t line_of(std::size_t byte) const {
    return 1 + std::count(text_.text.begin(), text_.text.begin() + static_cast<std::ptrdiff_t>(byte), '\n');
  }

  Status prepare();
  Status model_alone();
  Status with_modeld();
  Result<Answer> ask_modeld(Session& session, std::size_t i);
  void introduce(std::size_t bytes) const;
  void tell(std::size_t i, std::string_view answer, bool right) const;
  void tell_costs(const Session& session, const Answer& last, double ingest_seconds) const;
  void summary() const;
  Result<std::vector<DemoAnswer>> ask_dense(DenseRunner& runner, const std::string& stage) const;

  Engine& engine_;
  const Calibration& calibration_;
  const DemoOptions& options_;
  const TextSink& out_;
  const ProgressSink& progress_;
  const CancelFlag* cancel_;
  EvalText text_;
  std::vector<DemoAnswer> truncated_;
  std::vector<DemoAnswer> dense_;
  std::vector<DemoAnswer> ours_;
  double dense_seconds_ = 0.0;
  double question_seconds_ = 0.0;
  double decode_ms_ = 0.0;
  Stopwatch watch_;
};

Status Demo::prepare() {
  if (options_.tokens < options_.dense_tokens || options_.dense_tokens <= window()) {
    return fail(ErrorCode::bad_argument,
                "The text must be longer than the dense run, and the dense run longer than the model's window.",
                {{"tokens", options_.tokens}, {"dense_tokens", options_.dense_tokens}, {"trained_window", window()}});
  }
  MODELD_TRY(const std::string corpus,
             read_corpus(options_.text, static_cast<std::size_t>(options_.tokens) * kBytesPerToken));
  MODELD_TRY(const std::string cut, cut_to_tokens(engine_, corpus, options_.tokens));
  SeededRandom random(options_.seed);
  std::vector<Needle> needles;
  for (const NeedleKind kind : {NeedleKind::single, NeedleKind::lookalike, NeedleKind::paraphrase})
    for (Needle& needle : make_needles(kind, 2, options_.seed)) needles.push_back(std::move(needle));
  random.shuffle(needles);
  std::vector<double> depths;
  const auto total = static_cast<double>(options_.tokens);
  for (std::size_t i = 0; i < needles.size(); ++i) {
    const bool dense = i < kDenseFacts;
    const double from =
        dense ? static_cast<double>(window()) / total : static_cast<double>(options_.dense_tokens) / total;
    const double to = dense ? static_cast<double>(options_.dense_tokens) * 0.95 / total : 0.97;
    depths.push_back(from + 0.02 * (to - from) + random.unit() * 0.98 * (to - from));
  }
  MODELD_TRY(text_, locate(engine_, "demo", plant(cut, needles, depths)));
  introduce(corpus.size());
  return {};
}

void Demo::introduce(std::size_t bytes) const {
  const auto tokens = static_cast<std::int64_t>(text_.offsets.tokens.size());
  say(
      fmt::format("modeld demo\n===========\n\nModel  {}, trained for a window of {} tokens\n"
                  "Text   {} ({} KB of it read): {} tokens, {:.1f} times the window\n"
                  "Seed   {} (the same seed hides the same facts at the same places)\n\n"
                  "Six facts, which the text does not hold by itself, are hidden in it:\n\n",
                  engine_.geometry().name, window(), options_.text.filename().string(), bytes / 1024, tokens,
                  static_cast<double>(tokens) / static_cast<double>(window()), options_.seed));
  for (std::size_t i = 0; i < text_.items.size(); ++i) {
    const EvalItem& item = text_.items[i];
    const Evidence& fact = item.evidence.front();
    say(fmt::format("  {}. line {:>6}, token {:>6} ({:2.0f} %)  {}\n", i + 1, line_of(fact.byte_begin),
                    fact.token_begin, item.depth * 100.0,
                    std::string_view(text_.text).substr(fact.byte_begin, fact.byte_end - fact.byte_begin)));
  }
  say(fmt::format(
      "\nThe first {} stand within the first {} tokens on purpose, so that the dense run below is asked about "
      "what it was given.\nEach answer is begun for the model (shown before the |), since so small a model phrases "
      "badly; what comes after is its own.\n",
      kDenseFacts, options_.dense_tokens));
}

void Demo::tell(std::size_t i, std::string_view answer, bool right) const {
  const EvalItem& item = text_.items[i];
  std::string line(answer.substr(0, answer.find('\n')));
  say(fmt::format("  {}. {}\n     {} | {}   [{}]\n", i + 1, item.question, item.answer_prefix, line,
                  right ? "right" : fmt::format("wrong: it is {}", item.answers.front())));
}

Result<std::vector<DemoAnswer>> Demo::ask_dense(DenseRunner& runner, const std::string& stage) const {
  std::vector<DemoAnswer> answers;
  for (std::size_t i = 0; i < text_.items.size(); ++i) {
    MODELD_TRY(const Question question, forced_question(engine_, text_.items[i]));
    MODELD_TRY(const DenseAnswer answer, runner.ask(question, cancel_));
    const bool right = share_right(text_.items[i], answer.text) == 1.0;
    tell(i, answer.text, right);
    answers.push_back({answer.text, right});
    report(progress_, stage, i + 1, text_.items.size(), "questions");
  }
  return answers;
}

Status Demo::model_alone() {
  MODELD_TRY(DenseRunner runner, DenseRunner::open(engine_, options_.dense_tokens, options_.threads));
  const std::span<const Token> all(text_.offsets.tokens);
  const auto fits = static_cast<std::size_t>(window() - DenseRunner::kRoom);
  const Stopwatch watch;
  MODELD_TRY_VOID(
      runner.extend(all.first(fits), "1 of 3: the model alone, text cut to its window", progress_, cancel_));
  say(fmt::format("\n1. The model alone, the text cut to its window (first {} tokens)\n\n", fits));
  MODELD_TRY(truncated_, ask_dense(runner, "1 of 3: questions"));
  const auto more = static_cast<std::size_t>(options_.dense_tokens) - fits;
  MODELD_TRY_VOID(
      runner.extend(all.subspan(fits, more), "2 of 3: the model alone, dense past its window", progress_, cancel_));
  dense_seconds_ = watch.seconds();
  say(fmt::format("\n2. The model alone, dense over the first {} tokens, past its window\n\n", options_.dense_tokens));
  MODELD_TRY(dense_, ask_dense(runner, "2 of 3: questions"));
  return {};
}

Result<Answer> Demo::ask_modeld(Session& session, std::size_t i) {
  MODELD_TRY(const Question question, forced_question(engine_, text_.items[i]));
  MODELD_TRY(Answer answer, session.ask(question, {}, {}, cancel_));
  const bool right = share_right(text_.items[i], answer.text) == 1.0;
  tell(i, answer.text, right);
  std::string read;
  for (const Passage& passage : answer.retrieved) {
    if (!read.empty()) read += ", ";
    read += fmt::format("{}-{} ({:.2f})", passage.line_begin, passage.line_end, passage.score);
  }
  say(fmt::format("     read lines (score): {}; {:.1f} s\n", read.empty() ? "none" : read,
                  answer.seconds.retrieval() + answer.seconds.decode));
  ours_.push_back({answer.text, right});
  question_seconds_ += answer.seconds.retrieval() / static_cast<double>(text_.items.size());
  decode_ms_ += answer.decode_ms_per_token / static_cast<double>(text_.items.size());
  report(progress_, "3 of 3: questions", i + 1, text_.items.size(), "questions");
  return answer;
}

Status Demo::with_modeld() {
  const auto tokens = static_cast<std::int64_t>(text_.offsets.tokens.size());
  const std::int64_t needed = tokens * engine_.geometry().kv_bytes_per_token(options_.kv_type) * 3 / 2 + (64LL << 20);
  ColdStore store(options_.cold_bytes > 0 ? options_.cold_bytes : needed);
  SessionSettings settings;
  settings.hot_tokens = options_.hot_tokens;
  settings.kv_type = options_.kv_type;
  settings.answer_tokens = 48;
  settings.threads = options_.threads;
  settings.embedder = options_.embedder;
  MODELD_TRY(const std::unique_ptr<Session> session, Session::create(engine_, store, calibration_, settings));
  const std::array parts = {TextPart{options_.text.filename().string(), text_.text, SegmentKind::user}};
  MODELD_TRY_VOID(session->append(parts, cancel_));
  const ProgressSink reading = [this](const Progress& p) {
    report(progress_, "3 of 3: modeld reads the whole text", p.done, p.total, p.unit);
  };
  const Stopwatch watch;
  MODELD_TRY_VOID(session->ingest(reading, cancel_));
  const double ingest_seconds = watch.seconds();
  say(fmt::format("\n3. modeld: all {} tokens, at most {} of them attended at a time\n\n", session->stream_tokens(),
                  options_.hot_tokens));
  Answer last;
  for (std::size_t i = 0; i < text_.items.size(); ++i) {
    MODELD_TRY(last, ask_modeld(*session, i));
  }
  tell_costs(*session, last, ingest_seconds);
  return {};
}

void Demo::tell_costs(const Session& session, const Answer& last, double ingest_seconds) const {
  const double speed = static_cast<double>(session.stream_tokens()) / ingest_seconds;
  say(fmt::format(
      "\nSpeed   reading {:.0f} tokens/s ({:.0f} s for the text, once); a question {:.1f} s before its first "
      "word, then {:.0f} ms a token\n"
      "        dense, the first {} tokens alone took {:.0f} s\n",
      speed, ingest_seconds, question_seconds_, decode_ms_, options_.dense_tokens, dense_seconds_));
  const EngineMemory memory = engine_.memory();
  say(fmt::format(
      "Memory  weights {:.0f} MiB, KV on the device {:.0f} MiB ({} tokens attended), KV parked in RAM {:.0f} MiB, "
      "index {:.0f} MiB, whole process at most {:.0f} MiB\n",
      static_cast<double>(memory.weights) / kMiB, static_cast<double>(last.kv_bytes_device) / kMiB,
      last.attended_tokens, static_cast<double>(last.kv_bytes_host) / kMiB,
      static_cast<double>(last.index_bytes) / kMiB, static_cast<double>(peak_resident_bytes()) / kMiB));
}

void Demo::summary() const {
  const auto mark = [](const DemoAnswer& a) { return a.right ? "right" : "wrong"; };
  const auto right = [](const std::vector<DemoAnswer>& all) {
    return std::count_if(all.begin(), all.end(), [](const DemoAnswer& a) { return a.right; });
  };
  const std::string dense = fmt::format("dense {}", options_.dense_tokens);
  say(fmt::format("\nSummary\n\n  {:<4}{:<12}{:>8}   {:<14}{:<14}{}\n", "", "kind", "token", "cut to window", dense,
                  "modeld"));
  for (std::size_t i = 0; i < text_.items.size(); ++i) {
    const EvalItem& item = text_.items[i];
    say(fmt::format("  {:<4}{:<12}{:>8}   {:<14}{:<14}{}\n", i + 1, item.kind, item.evidence.front().token_begin,
                    mark(truncated_[i]), mark(dense_[i]), mark(ours_[i])));
  }
  const auto of = [&](const std::vector<DemoAnswer>& all) { return fmt::format("{} of {}", right(all), all.size()); };
  say(fmt::format("  {:<27}{:<14}{:<14}{}\n\n", "right", of(truncated_), of(dense_), of(ours_)));
  say(to_markdown(machine_stamp(options_.commit, options_.command)));
  say(fmt::format("- Took {:.0f} s in all\n", watch_.seconds()));
}

}  // namespace

Status run_demo(Engine& engine, const Calibration& calibration, const DemoOptions& options, const TextSink& out,
                const ProgressSink& progress, const CancelFlag* cancel) {
  const Status status = Demo(engine, calibration, options, out, progress, cancel).run();
  engine.close_context();
  return status;
}

}  // namespace modeld
