#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "eval/cells.h"
#include "eval/command.h"
#include "eval/modes.h"
#include "eval/perplexity.h"
#include "eval/picture.h"
#include "eval/report.h"
#include "eval/score_json.h"
#include "eval/scores.h"
#include "needles/quiz.h"

namespace modeld {
namespace {

/// Bytes of text that are read for one token wanted: more than any tokenizer leaves.
constexpr std::size_t kBytesPerToken = 8;

Status check_perplexity(const EvalOptions& options) {
  if (options.perplexity.empty() || (!options.text.empty() && options.probes >= 1)) return {};
  return fail(ErrorCode::bad_argument, "Perplexity is measured on a text, at one place of it at least: name a text.",
              {{"probes", options.probes}});
}

Status check(const EvalOptions& options, const Engine& engine) {
  const std::vector<std::string_view> known = eval_modes();
  for (const std::string& mode : options.modes) {
    if (std::find(known.begin(), known.end(), mode) == known.end()) {
      return fail(ErrorCode::bad_argument,
                  fmt::format("There is no mode \"{}\"; the modes are {}.", mode, fmt::join(known, ", ")));
    }
  }
  const std::span<const std::string_view> kinds = quiz_kinds();
  const std::set<std::string> named(options.kinds.begin(), options.kinds.end());
  const bool all_known = std::all_of(named.begin(), named.end(), [&](const std::string& kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  });
  if (named.empty() || named.size() != options.kinds.size() || !all_known) {
    return fail(ErrorCode::bad_argument,
                fmt::format("The kinds of facts are {}; name some of them, each once.", fmt::join(kinds, ", ")));
  }
  MODELD_TRY_VOID(check_perplexity(options));
  if (options.tokens < 1024 || options.questions < 0 || options.texts < 1 || options.output.empty()) {
    return fail(ErrorCode::bad_argument,
                "An evaluation needs texts of at least 1024 tokens, one of each corpus, and a folder for its results.",
                {{"tokens", options.tokens}, {"questions", options.questions}, {"texts", options.texts}});
  }
  const bool texts = !options.text.empty() || !options.code.empty() || !options.python.empty() || options.pairs ||
                     options.noise || options.words;
  if ((!texts || options.questions == 0) && options.passkeys == 0 && options.perplexity.empty()) {
    return fail(
        ErrorCode::bad_argument,
        "There is nothing to ask about: name a text, or a folder of source code, and ask at least one question.");
  }
  if (options.hot_tokens > engine.geometry().trained_window) {
    return fail(ErrorCode::hot_too_large, "The hot set is larger than the model's trained window; ask for less.",
                {{"hot_tokens", options.hot_tokens}, {"trained_window", engine.geometry().trained_window}});
  }
  return {};
}

class EvalRun {
 public:
  EvalRun(Engine& engine, const Calibration& calibration, const EvalOptions& options, const TextSink& out,
          const ProgressSink& progress, const CancelFlag* cancel)
      : engine_(engine),
        calibration_(calibration),
        options_(options),
        out_(out),
        progress_(progress),
        cancel_(cancel),
        folder_(options.output) {}

  Status run() {
    if (options_.questions > 0) MODELD_TRY_VOID(run_questions());
    for (std::int32_t i = 0; i < options_.passkeys; ++i) {
      MODELD_TRY(const EvalText text, make_passkey_text(engine_, options_.tokens, static_cast<std::size_t>(i),
                                                        static_cast<std::size_t>(options_.passkeys), options_.seed));
      MODELD_TRY_VOID(run_text(text, {kOurs, kFresh}));
    }
    return {};
  }

  [[nodiscard]] std::vector<Cell> cells() const {
    std::vector<Cell> all = cells_;
    merge_texts(all);
    return all;
  }

 private:
  Status run_questions() {
    MODELD_TRY_VOID(run_corpus("prose", options_.text));
    MODELD_TRY_VOID(run_corpus("code", options_.code));
    MODELD_TRY_VOID(run_code_facts());
    MODELD_TRY_VOID(run_pairs());
    MODELD_TRY_VOID(run_noise());
    return run_words();
  }

  /// Texts that are made with one seed after another, the first in every mode.
  Status run_texts(const std::string& name,
                   const std::function<Result<EvalText>(std::string name, std::uint64_t seed)>& make) {
    for (std::int32_t i = 0; i < options_.texts; ++i) {
      MODELD_TRY(const EvalText text,
                 make(fmt::format("{}-{}", name, i + 1), options_.seed + static_cast<std::uint64_t>(i)));
      MODELD_TRY_VOID(run_text(text, i == 0 ? eval_modes() : std::vector{kFresh, kOurs}));
    }
    return {};
  }

  Status run_corpus(const std::string& name, const std::filesystem::path& path) {
    if (path.empty()) return {};
    MODELD_TRY(const std::string corpus, read_corpus(path, static_cast<std::size_t>(options_.tokens) * kBytesPerToken));
    return run_texts(name, [&](std::string text, std::uint64_t seed) {
      return make_eval_text(engine_, std::move(text), corpus, options_.tokens, planted(options_.kinds, seed));
    });
  }

  [[nodiscard]] PlantSpec planted(std::vector<std::string> kinds, std::uint64_t seed) const {
    return {.kinds = std::move(kinds), .questions = static_cast<std::size_t>(options_.questions), .seed = seed};
  }

  Status run_noise() {
    if (!options_.noise) return {};
    const std::string noise = filler_repeated(static_cast<std::size_t>(options_.tokens) * kBytesPerToken);
    return run_texts("noise", [&](std::string text, std::uint64_t seed) {
      return make_eval_text(engine_, std::move(text), noise, options_.tokens, planted({"number", "chain"}, seed));
    });
  }

  Status run_code_facts() {
    if (options_.python.empty()) return {};
    return run_texts("python", [&](std::string text, std::uint64_t seed) {
      return make_code_text(engine_, std::move(text), options_.python, options_.tokens,
                            static_cast<std::size_t>(options_.questions), seed);
    });
  }

  Status run_pairs() {
    if (!options_.pairs) return {};
    for (const PairStyle style : {PairStyle::json, PairStyle::lines}) {
      MODELD_TRY_VOID(
          run_texts(style == PairStyle::json ? "json" : "lines", [&, style](std::string text, std::uint64_t seed) {
            return make_pairs_text(engine_, std::move(text), style, options_.tokens,
                                   static_cast<std::size_t>(options_.questions), seed);
          }));
    }
    return {};
  }

  /// A text has one question here, so that all texts are read in every mode.
  Status run_words() {
    if (!options_.words) return {};
    for (const WordStyle style : {WordStyle::common, WordStyle::frequent}) {
      for (std::int32_t i = 0; i < options_.texts; ++i) {
        const std::string name = fmt::format("{}-{}", style == WordStyle::common ? "common" : "frequent", i + 1);
        MODELD_TRY(const EvalText text, make_words_text(engine_, name, style, options_.tokens,
                                                        options_.seed + static_cast<std::uint64_t>(i)));
        MODELD_TRY_VOID(run_text(text, eval_modes()));
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<std::string> expand(const std::vector<std::string_view>& modes,
                                                const EvalText& text) const {
    std::vector<std::string> result;
    const auto length = static_cast<std::int64_t>(text.offsets.tokens.size());
    for (const std::string_view mode : modes) {
      const auto& asked = options_.modes;
      if (!asked.empty() && std::find(asked.begin(), asked.end(), mode) == asked.end()) continue;
      if (mode != kDense) result.emplace_back(mode);
      for (const std::int32_t tokens : options_.dense_tokens)
        if (mode == kDense && tokens <= length) result.push_back(fmt::format("{}-{}", kDense, tokens));
    }
    return result;
  }

  Status run_text(const EvalText& text, const std::vector<std::string_view>& modes) {
    EvalJob job{.engine = engine_,
                .calibration = calibration_,
                .options = options_,
                .text = text,
                .missing = {},
                .done = [this](const Cell& cell) { return finish(cell); },
                .progress = progress_,
                .cancel = cancel_};
    // Of each task, whether its questions are about the whole text.
    std::map<std::string, bool> tasks;
    for (const EvalItem& item : text.items) tasks[task_name(text, item.kind)] = item.evidence.empty();
    for (const std::string& mode : expand(modes, text)) {
      for (const auto& [task, whole_text] : tasks) {
        if (!has_meaning(mode, whole_text)) continue;
        Cell cell{.task = task,
                  .mode = mode,
                  .tokens = options_.tokens,
                  .parameters = parameters_of(job, mode),
                  .results = {}};
        if (auto stored = folder_.load(cell)) {
          keep(*stored);
        } else {
          job.missing.push_back(std::move(cell));
        }
      }
    }
    MODELD_TRY_VOID(run_fresh(job));
    MODELD_TRY_VOID(run_session_modes(job));
    return run_dense_modes(job);
  }

  Status finish(const Cell& cell) {
    MODELD_TRY_VOID(folder_.save(cell));
    keep(cell);
    return {};
  }
  void keep(const Cell& cell) {
    cells_.push_back(cell);
    if (out_ && !options_.json) out_(summary(cell));
  }

  /// One row for all texts of a corpus: "prose-1.single" and "prose-2.single" become "prose.single".
  static void merge_texts(std::vector<Cell>& cells) {
    std::vector<Cell> merged;
    for (Cell& cell : cells) {
      for (QuestionResult& result : cell.results) result.question += " " + cell.task;  // tells the texts apart
      const std::size_t number = cell.task.find('-');
      const std::size_t kind = cell.task.find('.');
      if (number < kind) cell.task.erase(number, kind - number);
      const auto same = std::find_if(merged.begin(), merged.end(), [&](const Cell& other) {
        return other.task == cell.task && other.mode == cell.mode;
      });
      if (same == merged.end()) {
        merged.push_back(std::move(cell));
      } else {
        same->results.insert(same->results.end(), cell.results.begin(), cell.results.end());
        same->prepare_seconds += cell.prepare_seconds;
      }
    }
    cells = std::move(merged);
  }

  Engine& engine_;
  const Calibration& calibration_;
  const EvalOptions& options_;
  const TextSink& out_;
  const ProgressSink& progress_;
  const CancelFlag* cancel_;
  CellFolder folder_;
  std::vector<Cell> cells_;
};

}  // namespace

Status run_eval(Engine& engine, const Calibration& calibration, const EvalOptions& options, const TextSink& out,
                const ProgressSink& progress, const CancelFlag* cancel) {
  MODELD_TRY_VOID(check(options, engine));
  EvalRun run(engine, calibration, options, out, progress, cancel);
  Status status = run.run();
  std::vector<PerplexityCell> perplexity;
  if (status && !options.perplexity.empty()) {
    auto measured = run_perplexity(engine, calibration, options, out, progress, cancel);
    if (measured) {
      perplexity = std::move(*measured);
    } else {
      status = tl::unexpected(std::move(measured).error());
    }
  }
  engine.close_context();
  if (!status) return status;
  const ReadingPolicy& reading = calibration.reading;
  const std::string notes = fmt::format(
      "- Model: {} (digest {}), trained window {} tokens\n"
      "- {}hot set {} tokens, {} KV; reading: {} blocks, {} KV, run-up {}, sinks {}, recent "
      "{}; embedder: {}; seed {}\n",
      engine.geometry().name, engine.identity().model.substr(0, 16), engine.geometry().trained_window,
      run.cells().empty() ? "" : fmt::format("Texts: {} tokens each; ", options.tokens), options.hot_tokens,
      to_text(options.kv_type), reading.blocks, to_text(reading.origin), reading.run_up, reading.sinks, reading.recent,
      options.embedder == nullptr ? "none" : options.embedder->name(), options.seed);
  const std::vector<Cell> cells = run.cells();
  const std::vector<CellScores> scores = scores_of(cells, options.seed);
  const MachineStamp stamp = machine_stamp(options.commit, options.command);
  std::string report = eval_report(cells, scores, stamp, notes);
  if (!perplexity.empty()) report += perplexity_report(perplexity, options.seed);
  if (out && !options.json) out("\n" + report);
  const CellFolder folder(options.output);
  // The picture comes first: a report never shows one that is not there.
  if (!scores.empty()) {
    MODELD_TRY_VOID(
        folder.write("report.svg", eval_picture(scores, fmt::format("{}: {} tokens, hot set {}", engine.geometry().name,
                                                                    options.tokens, options.hot_tokens))));
  }
  MODELD_TRY_VOID(folder.write("report.md", report));
  if (!out || !options.json) return {};
  const EvalSetting setting{.model = engine.geometry().name,
                            .digest = engine.identity().model,
                            .trained_window = engine.geometry().trained_window,
                            .tokens = options.tokens,
                            .hot_tokens = options.hot_tokens,
                            .kv_type = std::string(to_text(options.kv_type)),
                            .embedder = options.embedder == nullptr ? "" : std::string(options.embedder->name()),
                            .seed = options.seed,
                            .report = (options.output / "report.md").string(),
                            .picture = scores.empty() ? "" : (options.output / "report.svg").string()};
  out(eval_json(scores, perplexity_scores(perplexity, options.seed), stamp, setting) + "\n");
  return {};
}

}  // namespace modeld
