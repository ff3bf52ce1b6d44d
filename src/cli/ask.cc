// modeld ask: questions about a text of any length. The order is chosen so that what cannot work is refused early:
// arguments, sources (names and sizes), model (metadata), budgets, and only then load, calibration, reading, answering.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/session_texts.h"
#include "cli/state_choice.h"
#include "cli/terminal.h"
#include "cli/text_size.h"
#include "plan/reading.h"
#include "session/session.h"
#include "source/source.h"
#include "store/cold_store.h"
#include "stream/block.h"

namespace modeld {
namespace {

struct AskOptions {
  ModelChoice choice;
  std::vector<std::filesystem::path> files;
  std::vector<std::filesystem::path> pins;
  ContextMode context = ContextMode::auto_;
  std::int32_t answer_tokens = 256;
  std::int32_t follow = 4;
  Sampling sampling;
  bool map = false;
  bool json = false;
  bool quiet = false;
  std::string question;
  std::filesystem::path questions_file;
  /// The session that goes on or begins; empty: one that ends with this run.
  std::string session;
  StateChoice state;
};

// The longest block that the stream is cut into.
constexpr std::int32_t kBlockTokens = BlockLimits{}.max_tokens;
// Texts of at least this size are announced before they are read.
constexpr std::uint64_t kAnnounceBytes = std::uint64_t{1} << 20;
// Questions in a file are text as any other, and few.
constexpr std::uint64_t kQuestionsBytes = std::uint64_t{16} << 20;

Result<std::vector<std::string>> questions_of(const AskOptions& options) {
  if (!options.question.empty() && !options.questions_file.empty())
    return fail(ErrorCode::bad_argument, "Give either a question or --questions FILE, not both.");
  if (!options.question.empty()) return std::vector{options.question};
  if (options.questions_file.empty())
    return fail(ErrorCode::bad_argument,
                "There is no question. Give one in quotes, or a file of them with --questions.");
  std::error_code ignored;
  if (std::filesystem::is_directory(options.questions_file, ignored))
    return fail(ErrorCode::bad_argument, fmt::format("{} is a directory. Name a file with one question a line.",
                                                     options.questions_file.string()));
  SourceLimits limits;
  limits.max_bytes = kQuestionsBytes;
  MODELD_TRY(const Sources sources, read_sources(std::array{options.questions_file}, limits, &interrupt_flag()));
  std::vector<std::string> questions;
  std::istringstream lines(sources.texts.front().text);
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_not_of(" \t") != std::string::npos) questions.push_back(line);
  return questions;
}

/// Reads pinned texts first, then the rest, within one limit.
Result<std::vector<TextPart>> read_parts(const AskOptions& options, std::uint64_t limit, ProgressDisplay& display) {
  std::vector<TextPart> parts;
  std::size_t skipped = 0;
  for (const auto& [paths, kind] :
       {std::pair{&options.pins, SegmentKind::pinned}, std::pair{&options.files, SegmentKind::user}}) {
    if (paths->empty()) continue;
    SourceLimits limits;
    limits.max_bytes = limit;
    MODELD_TRY(Sources sources, read_sources(*paths, limits, &interrupt_flag()));
    limit -= std::min(limit, sources.bytes());
    skipped += sources.skipped.size();
    for (SourceText& source : sources.texts) {
      if (source.encoding != "UTF-8" && source.encoding != "ASCII")
        display.note(fmt::format("{} was read as {}.", source.name, source.encoding));
      parts.push_back({std::move(source.name), std::move(source.text), kind});
    }
  }
  if (skipped == 1) display.note("1 file that holds no text was left out.");
  if (skipped > 1) display.note(fmt::format("{} files that hold no text were left out.", skipped));
  return parts;
}

class AskRun {
 public:
  AskRun(const AskOptions& options, const Invocation& invocation)
      : options_(options),
        invocation_(invocation),
        display_(progress_style(options.quiet)),
        json_(options.json || many()) {}

  int run() {
    const Status ready = prepare();
    if (!ready) return end(ready.error());
    return answer_all();
  }

 private:
  [[nodiscard]] bool many() const { return !options_.questions_file.empty(); }

  int end(const Error& error, std::string_view question = "") {
    display_.finish();
    if (error.code == ErrorCode::cancelled) tell_state();
    return end_with(error, json_, question);
  }

  // What is left after Ctrl-C, for the person.
  void tell_state() {
    if (!session_ || !store_) return;
    const StoreUsage usage = store_->usage();
    display_.note(fmt::format(
        "Stopped. {} of {} tokens had been computed and parked ({}). {}",
        count_text(usage.cold_tokens + usage.dropped_tokens), count_text(session_->stream_tokens()),
        bytes_text(usage.used_bytes()),
        state_ ? fmt::format("Session \"{}\" goes on from the last of them that are on disk.", options_.session)
               : "They live in this process only: asking again starts over."));
  }

  Status prepare() {
    MODELD_TRY(questions_, questions_of(options_));
    MODELD_TRY(model_, plan_model(invocation_.engine, options_.choice));
    if (const std::int32_t most = model_.budget.hot_tokens / 2; options_.answer_tokens > most)
      return fail(ErrorCode::hot_too_small,
                  fmt::format("An answer of {} tokens needs more than half of a hot set of {}. Give --answer-tokens of "
                              "at most {}, or a larger --hot where the model's window allows it.",
                              options_.answer_tokens, model_.budget.hot_tokens, most),
                  {{"answer_tokens", options_.answer_tokens},
                   {"answer_tokens_max", most},
                   {"hot_tokens", model_.budget.hot_tokens}});
    MODELD_TRY_VOID(open_state());
    MODELD_TRY(std::vector<TextPart> parts, read_text(model_.description.geometry, model_.budget));
    MODELD_TRY_VOID(open_model(invocation_.engine, options_.choice, model_, display_));
    interruptible_ = std::make_unique<InterruptibleEngine>(*model_.engine);
    MODELD_TRY_VOID(check_questions());
    MODELD_TRY(calibration_, ready_calibration(*model_.engine, options_.choice, display_));
    MODELD_TRY_VOID(open_session(std::move(parts)));
    if (!many()) MODELD_TRY_VOID(tell_pass(question_of(questions_.front())));
    MODELD_TRY_VOID(session_->ingest(display_.sink(), &interrupt_flag()));
    display_.finish();
    tell_storage();
    return {};
  }

  Status open_state() {
    if (options_.session.empty()) return {};
    MODELD_TRY_VOID(check_session_name(options_.session));
    MODELD_TRY(state_, modeld::open_state(options_.state));
    const bool text = !options_.files.empty() || !options_.pins.empty();
    if (const auto there = state_->books().session(options_.session); there || text) return {};
    return fail(ErrorCode::session_missing,
                fmt::format("There is no session \"{}\" yet. Begin it with a text: --file.", options_.session));
  }

  // What could not be kept is told also to those who want no notes.
  void tell_storage() {
    const std::optional<Error> error = session_->take_storage_error();
    if (!error) return;
    display_.finish();
    tell(*error);
  }

  // Says what the text will take before it is read, and refuses what cannot fit whatever is dropped.
  Result<std::vector<TextPart>> read_text(const ModelGeometry& geometry, const Budget& budget) {
    std::vector<std::filesystem::path> paths = options_.pins;
    paths.insert(paths.end(), options_.files.begin(), options_.files.end());
    if (paths.empty()) return std::vector<TextPart>();
    MODELD_TRY(const std::uint64_t bytes, text_bytes(paths, &interrupt_flag()));
    const TextEstimate estimate = estimate_text(bytes, geometry, budget, options_.choice.threads);
    if (bytes >= kAnnounceBytes) display_.note(estimate_text_line(estimate, budget));
    MODELD_TRY_VOID(check_text_fits(estimate, budget));
    return read_parts(options_, text_bytes_limit(geometry, budget), display_);
  }

  // A question that can never fit is refused before the text is read.
  Status check_questions() const {
    for (const std::string& question : questions_) {
      MODELD_TRY(const std::vector<Token> tokens, model_.engine->tokenize(question, false, false));
      const auto count = static_cast<std::int32_t>(std::min<std::size_t>(tokens.size(), std::size_t{1} << 30));
      if (const auto shape =
              shape_turn(ReadingPolicy{}, model_.budget.hot_tokens, count, options_.answer_tokens, kBlockTokens);
          !shape && shape.error().code == ErrorCode::question_too_long && !many())
        return tl::unexpected(shape.error());
    }
    return {};
  }

  Status open_session(std::vector<TextPart> parts) {
    store_ = std::make_unique<ColdStore>(model_.budget.cold_bytes, state_.get());
    SessionSettings settings;
    settings.context = options_.context;
    settings.hot_tokens = model_.budget.hot_tokens;
    settings.kv_type = options_.choice.kv_type;
    settings.cold_type = options_.choice.cold_type;
    settings.answer_tokens = options_.answer_tokens;
    settings.threads = options_.choice.threads;
    settings.embedder = model_.embedder.get();
    settings.follow = options_.follow;
    settings.state = state_.get();
    settings.name = options_.session;
    MODELD_TRY(session_, Session::create(*model_.engine, *store_, calibration_, settings));
    tell_storage();
    MODELD_TRY_VOID(give_texts(std::move(parts)));
    MODELD_TRY(const IngestPlan plan, session_->plan());
    std::string line =
        plan.exact ? fmt::format("{} tokens, exact mode: all of it is attended; {} of KV",
                                 count_text(plan.stream_tokens), bytes_text(plan.kv_bytes))
                   : fmt::format("{} tokens in {} blocks, extended mode: {} of KV and {} of index; {} tokens stay hot",
                                 count_text(plan.stream_tokens), count_text(plan.blocks), bytes_text(plan.kv_bytes),
                                 bytes_text(plan.index_bytes), count_text(model_.budget.hot_tokens));
    if (plan.done_tokens > 0) line += fmt::format("; {} have been computed before", count_text(plan.done_tokens));
    if (const std::int64_t left = plan.stream_tokens - plan.done_tokens; left > 0) {
      // Nothing is known of this machine's speed yet before the first text that it reads.
      const double rough = rough_seconds(left, model_.description.geometry, options_.choice.threads);
      line += plan.predicted_seconds > 0.0 ? fmt::format("; about {}", duration_text(plan.predicted_seconds))
                                           : fmt::format("; very roughly {}", duration_text(rough));
    }
    display_.note(line + ".");
    if (plan.kv_bytes + plan.index_bytes > model_.budget.cold_bytes)
      display_.note(
          fmt::format("That is more than the {} of host memory that may be used: the KV of the least valuable blocks "
                      "will be dropped, and computed again where it is needed.",
                      bytes_text(model_.budget.cold_bytes)));
    return {};
  }

  // What a session has is not given to it again, and what has changed is not added to what it was.
  Status give_texts(std::vector<TextPart> named) {
    const std::vector<TextPart> there = session_->parts();
    const TextUpdate update = update_texts(there, std::move(named));
    if (!there.empty() && update.same + update.changed > 0)
      display_.note(fmt::format("The session has {} of these texts; {} of them have changed.",
                                update.same + update.changed, update.changed));
    if (update.changed > 0) return session_->replace(update.parts, &interrupt_flag());
    if (update.added == 0) return {};
    return session_->append(std::span(update.parts).subspan(there.size()), &interrupt_flag());
  }

  int answer_all() {
    int status = kExitSuccess;
    for (const std::string& question : questions_) {
      const Status answered = answer(question);
      if (answered) continue;
      status = end(answered.error(), many() ? question : "");
      // One question that does not fit says nothing about the next; a broken or stopped engine does.
      if (answered.error().code != ErrorCode::question_too_long) return status;
    }
    return status;
  }

  [[nodiscard]] Question question_of(const std::string& text) const {
    Question question;
    question.text = text;
    question.answer_tokens_max = options_.answer_tokens;
    question.sampling = options_.sampling;
    question.stop_at_line_end = !model_.engine->geometry().has_chat_template;
    question.map = options_.map;
    return question;
  }

  Status answer(const std::string& text) {
    const Question question = question_of(text);
    if (many()) MODELD_TRY_VOID(tell_pass(question));
    const TextSink stream = [this](std::string_view piece) {
      display_.finish();
      fmt::print("{}", piece);
      std::fflush(stdout);
    };
    MODELD_TRY(const Answer answer,
               session_->ask(question, json_ ? TextSink{} : stream, display_.sink(), &interrupt_flag()));
    display_.finish();
    if (json_) {
      fmt::print("{}\n", answer_json(answer, many() ? text : ""));
    } else {
      fmt::print("\n\n{}", answer_report(answer));
    }
    std::fflush(stdout);
    tell_storage();
    return {};
  }

  // A pass costs more than an ordinary question: what it takes is said before anything is computed for it.
  Status tell_pass(const Question& question) {
    if (!question.map) return {};
    MODELD_TRY(const MapReducePlan plan, session_->plan_map(question));
    if (plan.parts.empty()) return {};
    display_.note(
        fmt::format("A pass over the whole text: {} tokens read in {} parts, at most {} computed and {} "
                    "written; {} of putting partial answers together.",
                    count_text(plan.read_tokens), count_text(static_cast<std::int64_t>(plan.parts.size())),
                    count_text(plan.computed_tokens), count_text(plan.written_tokens),
                    plan.rounds.size() == 1 ? "1 round" : fmt::format("{} rounds", plan.rounds.size())));
    return {};
  }

  const AskOptions& options_;
  const Invocation& invocation_;
  ProgressDisplay display_;
  bool json_;
  std::vector<std::string> questions_;
  // Torn down from the last to the first: session, store, state, calibration, engine.
  ReadyModel model_;
  std::unique_ptr<InterruptibleEngine> interruptible_;
  Calibration calibration_;
  std::unique_ptr<State> state_;
  std::unique_ptr<ColdStore> store_;
  std::unique_ptr<Session> session_;
};

void add_sampling_flags(CLI::App& command, AskOptions& options) {
  add_seed_flag(command, options.sampling.seed);
  command
      .add_option("--temperature", options.sampling.temperature, "0 takes the likeliest token each time (default 0)")
      ->check(number_between(0.0, 100.0))
      ->type_name("T");
  command.add_option("--top-p", options.sampling.top_p, "Sample from the likeliest tokens of this total probability")
      ->check(number_between(0.0, 1.0))
      ->type_name("P");
  command.add_option("--top-k", options.sampling.top_k, "Sample from this many likeliest tokens; 0: all")
      ->check(whole_number_of_at_least(0))
      ->type_name("K");
}

}  // namespace

Command add_ask(CLI::App& app) {
  auto options = std::make_shared<AskOptions>();
  CLI::App* command = app.add_subcommand("ask", "Answer a question about texts of any length");
  add_model_flag(*command, options->choice);
  command
      ->add_option("--file", options->files,
                   "Text to ask about: a file, a directory, or - for standard input; may be repeated")
      ->type_name("PATH")
      ->allow_extra_args(false);
  command->add_option("--pin", options->pins, "A file whose KV stays hot before all others; may be repeated")
      ->type_name("PATH")
      ->allow_extra_args(false);
  add_memory_flags(*command, options->choice);
  add_embedder_flag(*command, options->choice);
  add_follow_flag(*command, options->follow);
  const std::map<std::string, ContextMode> modes = {
      {"exact", ContextMode::exact}, {"auto", ContextMode::auto_}, {"focus", ContextMode::focus}};
  add_choice(*command, "--context", options->context, modes,
             "exact: dense attention, overflow refused; auto: exact while it fits (default); focus: always compact")
      ->type_name("MODE");
  command->add_option("--answer-tokens", options->answer_tokens, "Longest answer (default 256)")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N");
  command->add_flag("--map", options->map,
                    "For questions about the whole text (how often, which most, a summary): reads all of it part by "
                    "part, asks each part, and answers from the partial answers. Costs a pass over the whole text for "
                    "each question");
  command
      ->add_option("--session", options->session,
                   "Go on with the session of this name, or begin it: its text need not be given or computed again")
      ->type_name("NAME");
  add_state_flags(*command, options->state);
  add_sampling_flags(*command, *options);
  add_threads_flag(*command, options->choice);
  command
      ->add_option("--questions", options->questions_file,
                   "A file of questions, one a line; prints one JSON object a line")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print one JSON object instead of text");
  command->add_flag("--quiet", options->quiet, "No progress and no notes on stderr");
  command->add_option("question", options->question, "The question, in quotes");
  return {command, [options](const Invocation& invocation) {
            if (options->files.empty() && options->pins.empty() && options->session.empty())
              return end_with({ErrorCode::bad_argument,
                               "There is no text to ask about. Name it with --file (or - for standard "
                               "input), or a session with --session.",
                               {}},
                              options->json);
            return AskRun(*options, invocation).run();
          }};
}

}  // namespace modeld
