// One question from its tokens to its counted answer: ingest what is missing, then answer in exact mode or in extended
// mode (read.cc).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "session/session_impl.h"

namespace modeld {

Result<Answer> SessionImpl::ask(const Question& question, const TextSink& sink, const ProgressSink& progress,
                                const CancelFlag* cancel) {
  const Stopwatch watch;
  ++turn_;
  Answer answer;
  MODELD_TRY(const QuestionTokens tokens, tokenise(question));
  const Turn turn{question, tokens, sink, progress, cancel, answer};
  Status status = make_ready(turn);
  if (status) {
    status = exact_ ? answer_exact(turn) : question.map ? answer_map(turn) : answer_extended(turn);
  }
  if (!status) {
    note_failure(status.error());
    return tl::unexpected(std::move(status).error());
  }
  answer.exact = exact_;
  answer.seconds.ingest = std::exchange(since_.ingest_seconds, 0.0);
  const double before = answer.map ? answer.map->partial_seconds : 0.0;
  note_use(answer);
  answer.ttft_ms = (watch.seconds() - answer.seconds.decode + before) * 1e3;
  return answer;
}

Status SessionImpl::make_ready(const Turn& turn) {
  const auto& [question, tokens, sink, progress, cancel, answer, pass] = turn;
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
    since_.ingest_seconds += again.seconds();
  }
  const std::int32_t question_tokens = tokens.size();
  const std::int32_t needed = static_cast<std::int32_t>(text_.end().get()) + question_tokens + settings_.answer_tokens;
  if (exact_ && needed > cells_) {
    // A longer question than the context was opened for: the whole prompt is computed again in a larger one.
    exact_room_ = question_tokens;
    MODELD_TRY_VOID(ingest_exact(progress, cancel));
  }
  if (!exact_) {
    const std::int32_t room = cells_ - resident_.end.get() - settings_.answer_tokens - question_tokens;
    if (room < std::min(1, shape_.blocks) * kBlockLimits.max_tokens) {
      MODELD_TRY_VOID(open_context(question_tokens));
      MODELD_TRY_VOID(make_resident());
    }
  }
  const double speed = speeds_.question > 0.0 ? speeds_.question : calibration_.prefill_tokens_per_second;
  answer.predicted_seconds = plan.predicted_seconds;
  if (speed > 0.0) answer.predicted_seconds += question_tokens * (exact_ ? 1 : 2) / speed;
  return {};
}

Status SessionImpl::compute_question(const QuestionTokens& tokens, std::span<const Token> written, Place at) {
  std::vector<BatchToken> batch;
  const std::array<std::span<const Token>, 4> parts = {tokens.before, tokens.content, tokens.after, written};
  for (const std::span<const Token> part : parts) {
    for (const Token token : part) {
      batch.push_back(BatchToken{token, at, kMain, false});
      ++at;
    }
  }
  batch.back().logits = true;
  return engine_.compute(batch);
}

Status SessionImpl::answer_exact(const Turn& turn) {
  const auto& [question, tokens, sink, progress, cancel, answer, pass] = turn;
  const Stopwatch watch;
  const Place at(static_cast<std::int32_t>(text_.end().get()));
  MODELD_TRY_VOID(engine_.observe({}));
  Status status = compute_question(tokens, {}, at);
  answer.seconds.question = watch.seconds();
  if (status) {
    Writing writing = begin_writing(question);
    const auto last = static_cast<std::size_t>(tokens.size()) - 1;
    const auto written = write(turn, writing, last, at + tokens.size(), nullptr);
    if (written) {
      account(tokens, {}, answer);
      writing.give_to(answer);
    } else {
      status = tl::unexpected(written.error());
    }
  }
  // The question leaves again, also after an error: the stream stays as it was.
  if (Status trimmed = trim_main(at); status && !trimmed) status = std::move(trimmed);
  return status;
}

void SessionImpl::account(const QuestionTokens& tokens, std::span<const StreamRange> retrieved, Answer& answer) {
  const std::int64_t stream = text_.end().get();
  answer.prompt_tokens = stream + tokens.size();
  answer.computed_tokens = std::exchange(since_.computed, 0) + tokens.size();
  answer.reused_tokens = answer.prompt_tokens - answer.computed_tokens;
  answer.reused_after_edit_tokens = std::exchange(since_.taken_over, 0);
  answer.recomputed_tokens = std::exchange(since_.recomputed, 0);
  answer.attended_tokens = answer.prompt_tokens;
  if (!exact_) {
    answer.attended_tokens = sinks_end().get() + tokens.size();
    for (const ResidentRange& resident : resident_.ranges) answer.attended_tokens += resident.range.size();
    answer.pinned_cold_tokens = resident_.pinned_cold_tokens;
    for (std::size_t b = 0; b < blocks_done(); ++b) {
      if (is_resident(b)) continue;
      std::int64_t read = 0;
      for (const StreamRange& range : retrieved)
        if (blocks_[b].range.overlaps(range)) read += range.size();
      answer.attended_tokens += read;
      if (blocks_[b].cls != CacheClass::volatile_) answer.pinned_cold_tokens -= read;
      const std::optional<BlockRecord> record = store_.record(id_, blocks_[b].range);
      const std::int64_t left = blocks_[b].range.size() - read;
      (record && record->has_payload ? answer.cold_tokens : answer.dropped_tokens) += left;
    }
  }
  answer.kv_bytes_device = engine_.memory().kv;
  answer.kv_bytes_host = store_.usage().payload_bytes;
  answer.index_bytes = exact_ ? 0 : index_->bytes();
  if (since_.ingest_seconds > 0.0) {
    answer.prefill_tokens_per_second =
        static_cast<double>(answer.computed_tokens - tokens.size()) / since_.ingest_seconds;
  }
}

}  // namespace modeld
