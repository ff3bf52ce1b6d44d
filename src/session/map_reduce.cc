// A question about the whole text, which no passage answers: blocks are admitted from the cold store in text order, as
// many at a time as fit beside the question, and each such part is asked; the answer is written from the partial
// answers, read as text (plan/map_reduce.h). The pass has a context of the whole hot set's size to itself: recent
// window and pinned text are parts as all others, so that no token is read twice.
#include "plan/map_reduce.h"

#include <algorithm>

#include "session/session_impl.h"

namespace modeld {
namespace {

/// What partial answers are read behind, and what stands before each.
constexpr std::string_view kLead = "These answers were found in the parts of a long text, in its order:";
constexpr std::string_view kLabel = "\n- ";

}  // namespace

Result<MapReducePlan> SessionImpl::plan_map(const Question& question) const {
  MODELD_TRY(const QuestionTokens tokens, tokenise(question));
  MODELD_TRY(const IngestPlan ingest, plan());
  if (ingest.exact && fits_exact(tokens.size())) return MapReducePlan{};
  return plan_map(question, tokens);
}

Result<MapReducePlan> SessionImpl::plan_map(const Question& question, const QuestionTokens& tokens) const {
  const StreamPos sinks(std::min<std::int64_t>(policy_.sinks, text_.end().get()));
  std::vector<std::int32_t> sizes;
  StreamPos end = sinks;
  const auto add = [&](const Block& block) {
    sizes.push_back(static_cast<std::int32_t>(block.range.size()));
    end = block.range.end;
  };
  for (std::size_t b = 0; b < blocks_done(); ++b) add(blocks_[b]);
  for (const Block& block : text_.cut(end, kBlockLimits)) add(block);
  MODELD_TRY(const std::vector<Token> lead, engine_.tokenize(kLead, false, false));
  MODELD_TRY(const std::vector<Token> label, engine_.tokenize(kLabel, false, false));
  MapReduceRequest request;
  request.blocks = sizes;
  request.hot = settings_.hot_tokens;
  request.sinks = static_cast<std::int32_t>(sinks.get());
  request.question = tokens.size();
  request.partial_answer = question.partial_tokens_max;
  request.answer = std::min(question.answer_tokens_max, settings_.answer_tokens);
  request.head = static_cast<std::int32_t>(frame_.head.size() + lead.size());
  request.label = static_cast<std::int32_t>(label.size()) + tokens.begun;
  request.lane = policy_.run_up + kBlockLimits.max_tokens;
  return plan_map_reduce(request);
}

Status SessionImpl::answer_map(const Turn& asked) {
  Turn turn = asked;
  turn.pass = &asked.answer.map.emplace();
  MODELD_TRY(const MapReducePlan plan, plan_map(turn.question, turn.tokens));
  const double speed = speeds_.question > 0.0 ? speeds_.question : calibration_.prefill_tokens_per_second;
  const std::int64_t question = turn.tokens.size();
  // An ordinary question is predicted to be computed twice.
  if (speed > 0.0) turn.answer.predicted_seconds += static_cast<double>(plan.computed_tokens - 2 * question) / speed;
  auto partial = map(turn, plan);
  Status status;
  if (partial) {
    status = reduce(turn, plan, std::move(*partial));
  } else {
    status = tl::unexpected(std::move(partial).error());
  }
  if (status) {
    since_.recomputed += turn.pass->computed_tokens - question;
    account(turn.tokens, {}, turn.answer);
    turn.answer.attended_tokens = turn.answer.prompt_tokens;
    turn.answer.cold_tokens = turn.answer.dropped_tokens = turn.answer.pinned_cold_tokens = 0;
  }
  // Also after an error: the next question opens a context of its own size and lays out its hot set as ever.
  engine_.close_context();
  cells_ = 0;
  resident_.valid = false;
  return status;
}

Result<std::vector<std::vector<Token>>> SessionImpl::map(const Turn& turn, const MapReducePlan& plan) {
  MODELD_TRY_VOID(open_cells(settings_.hot_tokens));
  MODELD_TRY_VOID(ingest_sinks());
  std::vector<std::vector<Token>> partial;
  for (const MapPart& part : plan.parts) {
    // Before the part, not behind it: the last one's answer may be on the screen by then.
    report(turn.progress, "asking each part of the text", static_cast<std::uint64_t>(turn.pass->read_tokens),
           static_cast<std::uint64_t>(plan.read_tokens), "tokens");
    MODELD_TRY(const Place at, admit_part(turn, part));
    MODELD_TRY(const Writing writing, ask_behind(turn, at, plan.parts.size() == 1));
    partial.push_back(writing.tokens());
    const StreamRange first = blocks_[part.first].range;
    const StreamRange last = blocks_[part.first + part.count - 1].range;
    const StreamText::Where begin = text_.where(first);
    const StreamText::Where end = text_.where(last);
    PartialAnswer& one = turn.pass->parts.emplace_back();
    one.range = {first.begin, last.end};
    one.source = begin.source;
    one.line_begin = begin.line_begin;
    one.line_end = end.source == begin.source ? end.line_end : begin.line_end;
    one.text = turn.question.answer_prefix + (turn.question.answer_prefix.empty() ? "" : " ") + writing.text();
    turn.pass->read_tokens += part.tokens;
  }
  return partial;
}

Status SessionImpl::reduce(const Turn& turn, const MapReducePlan& plan, std::vector<std::vector<Token>> partial) {
  for (std::size_t round = 0; round < plan.rounds.size(); ++round) {
    std::vector<std::vector<Token>> folded;
    std::span<const std::vector<Token>> left(partial);
    for (const std::int32_t size : plan.rounds[round]) {
      const auto together = left.first(static_cast<std::size_t>(size));
      left = left.subspan(together.size());
      if (together.size() == 1) {
        folded.push_back(together.front());
        continue;
      }
      report(turn.progress, "putting partial answers together", folded.size(), plan.rounds[round].size(), "answers");
      MODELD_TRY(const Place at, read_partial(turn, together));
      MODELD_TRY(const Writing writing, ask_behind(turn, at, round + 1 == plan.rounds.size()));
      folded.push_back(writing.tokens());
    }
    partial = std::move(folded);
    ++turn.pass->rounds;
  }
  return {};
}

Result<Place> SessionImpl::admit_part(const Turn& turn, const MapPart& part) {
  const Stopwatch watch;
  Place at(static_cast<std::int32_t>(sinks_end().get()));
  MODELD_TRY_VOID(trim_main(at));
  for (std::size_t b = part.first; b < part.first + part.count; ++b) {
    MODELD_TRY_VOID(admit_block(b, at));
    at += static_cast<std::int32_t>(blocks_[b].range.size());
  }
  turn.answer.seconds.admission += watch.seconds();
  return at;
}

Result<Place> SessionImpl::read_partial(const Turn& turn, std::span<const std::vector<Token>> partial) {
  const Stopwatch watch;
  MODELD_TRY(const std::vector<Token> lead, engine_.tokenize(kLead, false, false));
  MODELD_TRY(const std::vector<Token> label, engine_.tokenize(kLabel, false, false));
  MODELD_TRY_VOID(trim_main(Place(0)));
  MODELD_TRY_VOID(engine_.observe({}));
  std::vector<BatchToken> batch;
  Place at(0);
  const auto add = [&](std::span<const Token> tokens) {
    for (const Token token : tokens) {
      batch.push_back(BatchToken{token, at, kMain, false});
      ++at;
    }
  };
  add(frame_.head);
  add(lead);
  for (const std::vector<Token>& one : partial) {
    add(label);
    // With what each was begun with, so that it can be understood by itself.
    add(std::span(turn.tokens.after).last(static_cast<std::size_t>(turn.tokens.begun)));
    add(one);
  }
  MODELD_TRY_VOID(engine_.compute(batch));
  turn.pass->computed_tokens += at.get();
  turn.answer.seconds.question += watch.seconds();
  return at;
}

Result<Writing> SessionImpl::ask_behind(const Turn& turn, Place at, bool last) {
  const auto& [question, tokens, sink, progress, cancel, answer, report] = turn;
  MapReport& pass = *report;
  const Stopwatch watch;
  MODELD_TRY_VOID(engine_.observe({}));
  MODELD_TRY_VOID(compute_question(tokens, {}, at));
  answer.seconds.question += watch.seconds();
  if (last) pass.partial_seconds = answer.seconds.decode;
  const std::int32_t limit =
      last ? std::min(question.answer_tokens_max, settings_.answer_tokens) : question.partial_tokens_max;
  Writing writing(engine_, question, limit, question.stop_at_line_end || !frame_.chat);
  const auto row = static_cast<std::size_t>(tokens.size()) - 1;
  const TextSink nobody;
  const Turn part{question, tokens, last ? sink : nobody, progress, cancel, answer};
  MODELD_TRY(const auto none, write(part, writing, row, at + tokens.size(), nullptr));
  static_cast<void>(none);
  pass.computed_tokens += tokens.size();
  pass.written_tokens += static_cast<std::int64_t>(writing.tokens().size());
  if (last) {
    writing.give_to(answer);
    if (pass.written_tokens > 0)
      answer.decode_ms_per_token = answer.seconds.decode * 1e3 / static_cast<double>(pass.written_tokens);
  }
  return writing;
}

}  // namespace modeld
