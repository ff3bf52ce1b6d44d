// Reading and answering: the best blocks directly before the question, best last; the question computed behind them;
// the answer.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "session/sampler.h"
#include "session/session_impl.h"

namespace modeld {

Result<Answer> SessionImpl::ask(const Question& question, const TextSink& sink, const ProgressSink& progress,
                                const CancelFlag* cancel) {
  const Stopwatch watch;
  ++turn_;
  Answer answer;
  MODELD_TRY(const QuestionTokens tokens, tokenise(question));
  Status status = make_ready(tokens, answer, progress, cancel);
  if (status) {
    status = exact_ ? answer_exact(question, tokens, answer, sink, cancel)
                    : answer_extended(question, tokens, answer, sink, cancel);
  }
  if (!status) {
    note_failure(status.error());
    return tl::unexpected(std::move(status).error());
  }
  answer.exact = exact_;
  answer.seconds.ingest = std::exchange(ingest_seconds_since_, 0.0);
  answer.ttft_ms = (watch.seconds() - answer.seconds.decode) * 1e3;
  return answer;
}

Status SessionImpl::make_ready(const QuestionTokens& tokens, Answer& answer, const ProgressSink& progress,
                               const CancelFlag* cancel) {
  MODELD_TRY(const IngestPlan plan, this->plan());
  MODELD_TRY_VOID(ingest(progress, cancel));
  if (exact_ && !fits_exact(tokens.size())) {
    if (settings_.context == ContextMode::exact) {
      const std::int64_t prompt = text_.end().get() + tokens.size();
      return fail(
          ErrorCode::context_overflow,
          fmt::format("The prompt takes {} tokens and an answer {}; exact mode holds {} in all. Use --context auto, or "
                      "a shorter text or question.",
                      prompt, settings_.answer_tokens, exact_limit()),
          {{"prompt_tokens", prompt}, {"answer_tokens", settings_.answer_tokens}, {"exact_tokens", exact_limit()}});
    }
    leave_exact();
    const Stopwatch again;
    MODELD_TRY_VOID(ingest_extended(progress, cancel));
    ingest_seconds_since_ += again.seconds();
  }
  const std::int32_t question_tokens = tokens.size();
  const std::int32_t needed = static_cast<std::int32_t>(text_.end().get()) + question_tokens + settings_.answer_tokens;
  if (exact_ && needed > cells_) {
    // A longer question than the context was opened for: the whole prompt is computed again in a larger one.
    exact_room_ = question_tokens;
    MODELD_TRY_VOID(ingest_exact(progress, cancel));
  }
  if (!exact_) {
    const std::int32_t room = cells_ - resident_end_.get() - settings_.answer_tokens - question_tokens;
    if (room < std::min(1, shape_.blocks) * kBlockLimits.max_tokens) {
      MODELD_TRY_VOID(open_context(question_tokens));
      MODELD_TRY_VOID(make_resident());
    }
  }
  const double speed =
      question_tokens_per_second_ > 0.0 ? question_tokens_per_second_ : calibration_.prefill_tokens_per_second;
  answer.predicted_seconds = plan.predicted_seconds;
  if (speed > 0.0) answer.predicted_seconds += question_tokens * (exact_ ? 1 : 2) / speed;
  return {};
}

Status SessionImpl::compute_question(const QuestionTokens& tokens, Place at) {
  std::vector<BatchToken> batch;
  for (const std::vector<Token>* part : {&tokens.before, &tokens.content, &tokens.after}) {
    for (const Token token : *part) {
      batch.push_back(BatchToken{token, at, kMain, false});
      ++at;
    }
  }
  batch.back().logits = true;
  MODELD_TRY_VOID(engine_.observe({}));
  return engine_.compute(batch);
}

Status SessionImpl::answer_exact(const Question& question, const QuestionTokens& tokens, Answer& answer,
                                 const TextSink& sink, const CancelFlag* cancel) {
  const Stopwatch watch;
  const Place at(static_cast<std::int32_t>(text_.end().get()));
  Status status = compute_question(tokens, at);
  answer.seconds.question = watch.seconds();
  if (status) {
    account(tokens, {}, answer);
    status = generate(question, static_cast<std::size_t>(tokens.size()) - 1, at + tokens.size(), answer, sink, cancel);
  }
  // The question leaves again, also after an error: the stream stays as it was.
  if (Status trimmed = trim_main(at); status && !trimmed) status = std::move(trimmed);
  return status;
}

Status SessionImpl::answer_extended(const Question& question, const QuestionTokens& tokens, Answer& answer,
                                    const TextSink& sink, const CancelFlag* cancel) {
  const auto read = [&]() -> Status {
    MODELD_TRY(const Relevance relevant, relevance(tokens, question, answer.seconds));
    const Stopwatch admitting;
    MODELD_TRY(const HotSetPlan plan, plan_hot(relevant.scores, tokens.size(), relevant.blocks));
    PlacementRequest request;
    request.sink_tokens = static_cast<std::int32_t>(sinks_end_.get());
    std::vector<StreamRange> pinned;
    for (std::size_t i = 0; i + 1 < resident_.size(); ++i) pinned.push_back(resident_[i].range);
    request.pinned = pinned;
    request.recent = resident_.empty() ? StreamRange{sinks_end_, sinks_end_} : resident_.back().range;
    std::vector<StreamRange> retrieved;
    for (const std::size_t b : plan.retrieved) retrieved.push_back(blocks_[b].range);
    request.retrieved = retrieved;
    request.order = policy_.order;
    request.question_tokens = tokens.size();
    request.reserve_tokens = settings_.answer_tokens;
    request.place_limit = std::min(engine_.geometry().trained_window, cells_);
    MODELD_TRY(const Placement placement, place(request));
    for (const PlacedRange& placed : placement.retrieved) {
      const auto it = std::find(retrieved.begin(), retrieved.end(), placed.range);
      const auto rank = static_cast<std::size_t>(it - retrieved.begin());
      MODELD_TRY_VOID(admit_block(plan.retrieved[rank], placed.at));
    }
    for (const std::size_t b : plan.retrieved) answer.retrieved.push_back(passage(b, relevant.scores[b]));
    answer.seconds.admission = admitting.seconds();
    const Stopwatch computing;
    MODELD_TRY_VOID(compute_question(tokens, placement.question));
    answer.seconds.question = computing.seconds();
    question_tokens_per_second_ = tokens.size() / answer.seconds.question;
    account(tokens, plan.retrieved, answer);
    return generate(question, static_cast<std::size_t>(tokens.size()) - 1, placement.question + tokens.size(), answer,
                    sink, cancel);
  };
  Status status = read();
  // Retrieved blocks, question and answer leave the hot set again, also after an error.
  if (Status trimmed = trim_main(resident_end_); status && !trimmed) status = std::move(trimmed);
  return status;
}

Status SessionImpl::generate(const Question& question, std::size_t last_row, Place at, Answer& answer,
                             const TextSink& sink, const CancelFlag* cancel) {
  const Stopwatch watch;
  Sampler sampler(question.sampling);
  const std::int32_t limit = std::min(question.answer_tokens_max, settings_.answer_tokens);
  const bool one_line = question.stop_at_line_end || !frame_.chat;
  std::string held;
  const auto emit = [&](bool last) {
    const std::size_t whole = last ? held.size() : whole_utf8(held);
    std::string_view text = std::string_view(held).substr(0, whole);
    if (answer.text.empty()) text.remove_prefix(std::min(text.find_first_not_of(" \n\t"), text.size()));
    answer.text += text;
    if (sink && !text.empty()) sink(text);
    held.erase(0, whole);
  };
  std::size_t row = last_row;
  while (true) {
    if (cancel != nullptr && cancel->requested()) return fail(ErrorCode::cancelled, "Cancelled while answering.");
    const Token token = sampler.sample(engine_.logits(row));
    if (engine_.is_end(token)) {
      answer.finished = true;
      break;
    }
    std::string piece = engine_.piece(token);
    const std::size_t line_end = one_line ? piece.find('\n') : std::string::npos;
    if (line_end != std::string::npos && (!answer.text.empty() || !held.empty())) {
      held += piece.substr(0, line_end);
      answer.finished = true;
      break;
    }
    answer.tokens.push_back(token);
    held += piece;
    emit(false);
    if (static_cast<std::int32_t>(answer.tokens.size()) >= limit) break;
    const BatchToken next{token, at, kMain, true};
    MODELD_TRY_VOID(engine_.compute(std::span(&next, 1)));
    row = 0;
    ++at;
  }
  emit(true);
  answer.seconds.decode = watch.seconds();
  if (!answer.tokens.empty()) {
    answer.decode_ms_per_token = answer.seconds.decode * 1e3 / static_cast<double>(answer.tokens.size());
  }
  return {};
}

void SessionImpl::account(const QuestionTokens& tokens, std::span<const std::size_t> retrieved, Answer& answer) {
  const std::int64_t stream = text_.end().get();
  answer.prompt_tokens = stream + tokens.size();
  answer.computed_tokens = std::exchange(computed_since_, 0) + tokens.size();
  answer.reused_tokens = answer.prompt_tokens - answer.computed_tokens;
  answer.recomputed_tokens = std::exchange(recomputed_since_, 0);
  answer.attended_tokens = answer.prompt_tokens;
  if (!exact_) {
    answer.attended_tokens = sinks_end_.get() + tokens.size();
    for (const ResidentRange& resident : resident_) answer.attended_tokens += resident.range.size();
    for (const std::size_t b : retrieved) answer.attended_tokens += blocks_[b].range.size();
    for (std::size_t b = 0; b < blocks_done_; ++b) {
      const bool hot = std::find(retrieved.begin(), retrieved.end(), b) != retrieved.end() ||
                       std::any_of(resident_.begin(), resident_.end(),
                                   [&](const ResidentRange& r) { return r.range.overlaps(blocks_[b].range); });
      if (hot) continue;
      const std::optional<BlockRecord> record = store_.record(id_, blocks_[b].range);
      (record && record->has_payload ? answer.cold_tokens : answer.dropped_tokens) += blocks_[b].range.size();
    }
    answer.pinned_cold_tokens = pinned_cold_tokens_;
    for (const std::size_t b : retrieved)
      if (blocks_[b].cls != CacheClass::volatile_) answer.pinned_cold_tokens -= blocks_[b].range.size();
  }
  answer.kv_bytes_device = engine_.memory().kv;
  answer.kv_bytes_host = store_.usage().payload_bytes;
  answer.index_bytes = exact_ ? 0 : index_->bytes() + lexical_.bytes();
  if (ingest_seconds_since_ > 0.0) {
    answer.prefill_tokens_per_second =
        static_cast<double>(answer.computed_tokens - tokens.size()) / ingest_seconds_since_;
  }
}

}  // namespace modeld
