#include "eval/modes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/digest.h"
#include "base/stopwatch.h"
#include "eval/dense.h"

namespace modeld {
namespace {

constexpr std::size_t kRanked = 16;

bool is_session_mode(std::string_view mode) {
  return mode == kOurs || mode == kMap || mode == kSinksRecent || mode == kOracle;
}

std::vector<std::size_t> items_of(const EvalText& text, std::string_view task) {
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < text.items.size(); ++i)
    if (task_name(text, text.items[i].kind) == task) items.push_back(i);
  return items;
}

/// Those of a kind's items, ascending, that are also asked without a forced prefix.
std::vector<std::size_t> free_items(const EvalJob& job, const std::vector<std::size_t>& items) {
  return spread(items, static_cast<std::size_t>(job.options.free_questions));
}

QuestionResult start(const EvalItem& item) {
  QuestionResult result;
  result.question = item.question;
  result.expected = fmt::format("{}", fmt::join(item.answers, ", "));
  result.depth = item.depth;
  return result;
}

void judge_forced(QuestionResult& result, const EvalItem& item, std::string answer) {
  result.forced_right = share_right(item, answer);
  result.forced = std::move(answer);
}

void judge_free(QuestionResult& result, const EvalItem& item, std::string answer) {
  result.free_asked = true;
  result.free_right = share_contained(item, answer);
  result.free = std::move(answer);
}

/// From 1, for each of `blocks`; 0 if it is not among the ranked ones.
std::vector<std::int32_t> ranks_of(std::span<const StreamRange> blocks, const std::vector<StreamRange>& ranking) {
  std::vector<std::int32_t> ranks;
  for (const StreamRange& block : blocks) {
    const auto found = std::find(ranking.begin(), ranking.end(), block);
    ranks.push_back(found == ranking.end() ? 0 : static_cast<std::int32_t>(found - ranking.begin()) + 1);
  }
  return ranks;
}

/// Of a block only the sentence that matters may have been read: then an answer must stand in it.
bool was_read(const Answer& answer, const StreamRange& block, const EvalItem& item) {
  return std::any_of(answer.retrieved.begin(), answer.retrieved.end(), [&](const Passage& passage) {
    return passage.range == block || (block.begin <= passage.range.begin && passage.range.end <= block.end &&
                                      share_contained(item, passage.text) > 0.0);
  });
}

/// One session over the text, and the cells that are asked of it.
class SessionModes {
 public:
  SessionModes(const EvalJob& job, Session& session, std::vector<TrueBlocks> truth)
      : job_(job), session_(session), truth_(std::move(truth)) {}

  Status run(Cell cell) {
    const std::vector<std::size_t> items = items_of(job_.text, cell.task);
    const std::string stage = fmt::format("{} {}", cell.task, cell.mode);
    const std::vector<std::size_t> freely = free_items(job_, items);
    for (const std::size_t i : items) {
      const bool free = cell.mode == kOurs && std::binary_search(freely.begin(), freely.end(), i);
      MODELD_TRY(QuestionResult result, answer(i, cell.mode, free));
      cell.results.push_back(std::move(result));
      report(job_.progress, stage, cell.results.size(), items.size(), "questions");
    }
    return job_.done(cell);
  }

 private:
  Result<QuestionResult> answer(std::size_t i, std::string_view mode, bool freely) {
    const EvalItem& item = job_.text.items[i];
    QuestionResult result = start(item);
    MODELD_TRY(Question question, forced_question(job_.engine, item));
    question.retrieve = mode != kSinksRecent;
    question.map = mode == kMap;
    // A part may hold as much of what is asked for as the whole.
    question.partial_tokens_max = question.answer_tokens_max;
    if (mode == kOracle) question.oracle = truth_[i].sentences;
    const Stopwatch watch;
    MODELD_TRY(Answer forced, session_.ask(question, {}, {}, job_.cancel));
    result.seconds = watch.seconds();
    result.returns = forced.returns;
    const std::vector<StreamRange>& wanted = truth_[i].answers;
    for (const StreamRange& block : wanted)
      if (was_read(forced, block, item)) result.read += 1.0 / static_cast<double>(wanted.size());
    judge_forced(result, item, std::move(forced.text));
    if (mode != kOurs) return result;
    if (freely) {
      MODELD_TRY(Answer free, session_.ask(free_question(item), {}, {}, job_.cancel));
      judge_free(result, item, std::move(free.text));
    }
    if (session_.blocks().empty() || wanted.empty()) return result;
    MODELD_TRY(const std::vector<SelectorRanking> rankings, session_.compare_selectors(question, kRanked));
    for (const SelectorRanking& ranking : rankings)
      result.rivals.push_back({ranking.selector, ranks_of(wanted, ranking.blocks)});
    if (result.rivals.empty()) return result;
    result.ranks = std::move(result.rivals.front().ranks);  // ours
    result.rivals.erase(result.rivals.begin());
    return result;
  }

  const EvalJob& job_;
  Session& session_;
  std::vector<TrueBlocks> truth_;
};

/// Truncated and dense cells by the tokens of text that they see.
struct DenseStep {
  std::int64_t tokens = 0;
  std::vector<Cell> cells;
};

/// Behind the last token that a question needs.
std::int64_t last_token(const EvalItem& item) { return item.evidence.empty() ? 0 : item.evidence.back().token_end; }

std::vector<DenseStep> dense_steps(const EvalJob& job, std::int64_t window_text) {
  std::vector<DenseStep> steps;
  for (const Cell& cell : job.missing) {
    if (!cell.mode.starts_with(kDense) && cell.mode != kTruncated) continue;
    const std::int64_t tokens = cell.mode == kTruncated ? window_text : std::stoll(cell.mode.substr(kDense.size() + 1));
    const auto found = std::find_if(steps.begin(), steps.end(), [&](const DenseStep& s) { return s.tokens == tokens; });
    DenseStep& step = found == steps.end() ? steps.emplace_back(DenseStep{tokens, {}}) : *found;
    step.cells.push_back(cell);
  }
  std::sort(steps.begin(), steps.end(), [](const DenseStep& a, const DenseStep& b) { return a.tokens < b.tokens; });
  return steps;
}

Status ask_dense(const EvalJob& job, DenseRunner& runner, Cell cell) {
  std::vector<std::size_t> items = items_of(job.text, cell.task);
  const auto limit = static_cast<std::size_t>(job.options.dense_questions);
  if (cell.mode == kTruncated) {
    items = spread(items, limit);
  } else {
    // Only what the model was given can be asked of it; the kinds share the questions.
    std::erase_if(items, [&](std::size_t i) { return last_token(job.text.items[i]) > runner.text_tokens(); });
    std::set<std::string> kinds;
    for (const EvalItem& item : job.text.items) kinds.insert(item.kind);
    items = spread(items, (limit + kinds.size() - 1) / kinds.size());
  }
  const std::string stage = fmt::format("{} {}", cell.task, cell.mode);
  for (const std::size_t i : items) {
    QuestionResult result = start(job.text.items[i]);
    MODELD_TRY(const Question question, forced_question(job.engine, job.text.items[i]));
    const Stopwatch watch;
    MODELD_TRY(DenseAnswer answer, runner.ask(question, job.cancel));
    result.seconds = watch.seconds();
    judge_forced(result, job.text.items[i], std::move(answer.text));
    cell.results.push_back(std::move(result));
    report(job.progress, stage, cell.results.size(), items.size(), "questions");
  }
  return job.done(cell);
}

}  // namespace

std::vector<std::string_view> eval_modes() { return {kFresh, kOurs, kMap, kSinksRecent, kTruncated, kDense, kOracle}; }

bool has_meaning(std::string_view mode, bool whole_text) {
  return whole_text ? mode != kFresh && mode != kOracle : mode != kMap;
}

std::string task_name(const EvalText& text, std::string_view kind) { return fmt::format("{}.{}", text.name, kind); }

std::string parameters_of(const EvalJob& job, std::string_view mode) {
  const EvalOptions& o = job.options;
  const std::string text = fmt::format("seed={} model={} text={}", o.seed, job.engine.identity().model.substr(0, 16),
                                       Hasher().text(job.text.text).finish().hex());
  if (mode == kFresh) return text + fmt::format(" passage={} free={}", kPassageTokens, o.free_questions);
  if (!is_session_mode(mode)) return text + fmt::format(" questions={}", o.dense_questions);
  const RereadPolicy& reread = o.reread;
  return text +
         fmt::format(" hot={} kv={}{} calibration={} reading={} reread={}/{}/{} follow={} cold={} free={} embedder={}",
                     o.hot_tokens, to_text(o.kv_type), o.cold_type ? fmt::format("/{}", to_text(*o.cold_type)) : "",
                     job.calibration.digest().substr(0, 16), policy_text(job.calibration.reading), reread.returns,
                     reread.look_tokens, reread.margin, o.follow, o.cold_bytes, o.free_questions,
                     o.embedder == nullptr ? "none" : o.embedder->name());
}

std::string policy_text(const ReadingPolicy& p) {
  return fmt::format("{}/runup{}/window{}/blocks{}/order{}/sinks{}/recent{}", to_text(p.origin), p.run_up,
                     p.stream_window, p.blocks, static_cast<int>(p.order), p.sinks, p.recent);
}

SessionSettings session_settings(const EvalOptions& options) {
  SessionSettings settings;
  settings.context = ContextMode::focus;
  settings.hot_tokens = options.hot_tokens;
  settings.kv_type = options.kv_type;
  settings.cold_type = options.cold_type;
  settings.answer_tokens = 48;
  settings.threads = options.threads;
  settings.reread = options.reread;
  settings.follow = options.follow;
  settings.embedder = options.embedder;
  return settings;
}

std::int64_t store_bytes(const Engine& engine, const EvalOptions& options, std::int64_t tokens) {
  if (options.cold_bytes > 0) return options.cold_bytes;
  // KV of everything, and as much again of a half for index, tokens and headers.
  return tokens * engine.geometry().kv_bytes_per_token(options.kv_type) * 3 / 2 + (64LL << 20);
}

Status run_fresh(const EvalJob& job) {
  for (Cell cell : job.missing) {
    if (cell.mode != kFresh) continue;
    MODELD_TRY(DenseRunner runner,
               DenseRunner::open(job.engine, static_cast<std::int32_t>(kPassageTokens) + 64, job.options.threads));
    const std::vector<std::size_t> items = items_of(job.text, cell.task);
    const std::vector<std::size_t> freely = free_items(job, items);
    const std::string stage = fmt::format("{} {}", cell.task, cell.mode);
    for (const std::size_t i : items) {
      const EvalItem& item = job.text.items[i];
      QuestionResult result = start(item);
      const std::string passage = passages_around(job.text, item, kPassageTokens);
      MODELD_TRY(const std::vector<Token> tokens, job.engine.tokenize(passage, false, false));
      const Stopwatch watch;
      MODELD_TRY_VOID(runner.reset());
      MODELD_TRY_VOID(runner.extend(tokens, {}, {}, job.cancel));
      MODELD_TRY(const Question question, forced_question(job.engine, item));
      MODELD_TRY(DenseAnswer forced, runner.ask(question, job.cancel));
      result.seconds = watch.seconds();
      judge_forced(result, item, std::move(forced.text));
      if (std::binary_search(freely.begin(), freely.end(), i)) {
        MODELD_TRY(DenseAnswer free, runner.ask(free_question(item), job.cancel));
        judge_free(result, item, std::move(free.text));
      }
      cell.results.push_back(std::move(result));
      report(job.progress, stage, cell.results.size(), items.size(), "questions");
    }
    MODELD_TRY_VOID(job.done(cell));
  }
  return {};
}

Status run_session_modes(const EvalJob& job) {
  const bool wanted =
      std::any_of(job.missing.begin(), job.missing.end(), [](const Cell& cell) { return is_session_mode(cell.mode); });
  if (!wanted) return {};
  const auto tokens = static_cast<std::int64_t>(job.text.offsets.tokens.size());
  ColdStore store(store_bytes(job.engine, job.options, tokens));
  MODELD_TRY(const std::unique_ptr<Session> session,
             Session::create(job.engine, store, job.calibration, session_settings(job.options)));
  const std::array parts = {TextPart{"text", job.text.text, SegmentKind::user}};
  MODELD_TRY_VOID(session->append(parts, job.cancel));
  const Stopwatch watch;
  MODELD_TRY_VOID(session->ingest(job.progress, job.cancel));
  const double seconds = watch.seconds();
  MODELD_TRY(std::vector<TrueBlocks> truth, true_blocks(job.engine, *session, job.text));
  SessionModes modes(job, *session, std::move(truth));
  for (Cell cell : job.missing) {
    if (!is_session_mode(cell.mode)) continue;
    cell.prepare_seconds = seconds;
    MODELD_TRY_VOID(modes.run(std::move(cell)));
  }
  return {};
}

Status run_dense_modes(const EvalJob& job) {
  const std::int64_t window_text = job.engine.geometry().trained_window - DenseRunner::kRoom;
  std::vector<DenseStep> steps = dense_steps(job, window_text);
  if (steps.empty()) return {};
  const auto available = static_cast<std::int64_t>(job.text.offsets.tokens.size());
  const std::int64_t longest = std::min(available, steps.back().tokens);
  MODELD_TRY(DenseRunner runner,
             DenseRunner::open(job.engine, static_cast<std::int32_t>(longest), job.options.threads));
  const std::span<const Token> all(job.text.offsets.tokens);
  const Stopwatch watch;
  for (DenseStep& step : steps) {
    const std::int64_t from = runner.text_tokens();
    const std::int64_t to = std::min(available, step.tokens);
    const std::string stage = fmt::format("{} dense, reading to {} tokens", job.text.name, to);
    MODELD_TRY_VOID(runner.extend(all.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)),
                                  stage, job.progress, job.cancel));
    const double seconds = watch.seconds();
    for (Cell& cell : step.cells) {
      cell.prepare_seconds = seconds;
      MODELD_TRY_VOID(ask_dense(job, runner, std::move(cell)));
    }
  }
  return {};
}

}  // namespace modeld
