#include "eval/dense.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stopwatch.h"

namespace modeld {
namespace {

constexpr SeqId kMain = 0;
constexpr std::size_t kBatch = 512;
/// Tokens whose logits are held at a time: each takes four bytes for every token of the vocabulary.
constexpr std::size_t kScoredAtOnce = 64;

std::vector<BatchToken> batch_of(std::span<const Token> tokens, Place at) {
  std::vector<BatchToken> batch;
  batch.reserve(tokens.size());
  for (const Token token : tokens) {
    batch.push_back(BatchToken{token, at, kMain, false});
    ++at;
  }
  return batch;
}

}  // namespace

Result<DenseRunner> DenseRunner::open(Engine& engine, std::int32_t text_tokens, std::int32_t threads) {
  MODELD_TRY(PromptFrame frame, make_frame(engine));
  ContextSpec spec;
  spec.cells = text_tokens + kRoom;
  spec.threads = threads;
  spec.batch = static_cast<std::int32_t>(kBatch);
  MODELD_TRY_VOID(engine.open_context(spec));
  MODELD_TRY_VOID(engine.observe({}));
  DenseRunner runner(engine, std::move(frame));
  MODELD_TRY_VOID(runner.reset());
  return runner;
}

Status DenseRunner::reset() {
  const PlaceRange held = engine_->extent(kMain);
  if (!held.empty()) MODELD_TRY_VOID(engine_->evict(kMain, held));
  end_ = Place(0);
  if (!frame_.head.empty()) MODELD_TRY_VOID(engine_->compute(batch_of(frame_.head, end_)));
  end_ += static_cast<std::int32_t>(frame_.head.size());
  return {};
}

Status DenseRunner::extend(std::span<const Token> tokens, std::string_view stage, const ProgressSink& progress,
                           const CancelFlag* cancel) {
  const auto total = static_cast<std::uint64_t>(text_tokens()) + tokens.size();
  while (!tokens.empty()) {
    if (cancel != nullptr && cancel->requested())
      return fail(ErrorCode::cancelled, "Cancelled while reading the text.");
    const auto part = tokens.first(std::min(tokens.size(), kBatch));
    MODELD_TRY_VOID(engine_->compute(batch_of(part, end_)));
    end_ += static_cast<std::int32_t>(part.size());
    tokens = tokens.subspan(part.size());
    if (!stage.empty()) report(progress, stage, static_cast<std::uint64_t>(text_tokens()), total, "tokens");
  }
  return {};
}

Result<Scored> DenseRunner::score(std::span<const Token> tokens, const CancelFlag* cancel) {
  Scored scored;
  while (tokens.size() > 1) {
    if (cancel != nullptr && cancel->requested()) return fail(ErrorCode::cancelled, "Cancelled while scoring.");
    const std::size_t count = std::min(tokens.size() - 1, kScoredAtOnce);
    std::vector<BatchToken> batch = batch_of(tokens.first(count), end_);
    for (BatchToken& token : batch) token.logits = true;
    MODELD_TRY_VOID(engine_->compute(batch));
    for (std::size_t i = 0; i < count; ++i)
      scored.nll.push_back(negative_log_likelihood(engine_->logits(i), tokens[i + 1]));
    end_ += static_cast<std::int32_t>(count);
    tokens = tokens.subspan(count);
  }
  scored.attended_tokens = end_.get();
  return scored;
}

Result<std::vector<Token>> DenseRunner::question_tokens(const Question& question) const {
  MODELD_TRY(std::vector<Token> all, engine_->tokenize(frame_.before_question, false, false));
  MODELD_TRY(const std::vector<Token> content, engine_->tokenize(question.text, false, false));
  all.insert(all.end(), content.begin(), content.end());
  all.insert(all.end(), frame_.after_question.begin(), frame_.after_question.end());
  if (!question.answer_prefix.empty()) {
    MODELD_TRY(const std::vector<Token> prefix,
               engine_->tokenize((frame_.chat ? "" : " ") + question.answer_prefix, false, false));
    all.insert(all.end(), prefix.begin(), prefix.end());
  }
  return all;
}

Result<DenseAnswer> DenseRunner::ask(const Question& question, const CancelFlag* cancel) {
  MODELD_TRY(const std::vector<Token> tokens, question_tokens(question));
  const auto size = static_cast<std::int32_t>(tokens.size());
  const std::int32_t needed = end_.get() + size + question.answer_tokens_max;
  if (needed > engine_->context().cells) {
    return fail(ErrorCode::question_too_long,
                "The question and its answer do not fit behind the text; ask a shorter one.",
                {{"needed_tokens", needed}, {"context_tokens", engine_->context().cells}});
  }
  DenseAnswer answer;
  answer.prompt_tokens = end_.get() + size;
  const Stopwatch watch;
  std::vector<BatchToken> batch = batch_of(tokens, end_);
  batch.back().logits = true;
  Status status = engine_->compute(batch);
  answer.question_seconds = watch.seconds();
  if (status) status = generate(question, end_ + size, tokens.size() - 1, answer, cancel);
  const PlaceRange behind{end_, end_ + size + question.answer_tokens_max};
  if (Status evicted = engine_->evict(kMain, behind); status && !evicted) status = std::move(evicted);
  if (!status) return tl::unexpected(std::move(status).error());
  return answer;
}

Status DenseRunner::generate(const Question& question, Place at, std::size_t row, DenseAnswer& answer,
                             const CancelFlag* cancel) {
  const Stopwatch watch;
  const bool one_line = question.stop_at_line_end || !frame_.chat;
  while (answer.answer_tokens < question.answer_tokens_max) {
    if (cancel != nullptr && cancel->requested()) return fail(ErrorCode::cancelled, "Cancelled while answering.");
    const std::span<const float> logits = engine_->logits(row);
    const auto token = static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    if (engine_->is_end(token)) break;
    ++answer.answer_tokens;
    const std::string piece = engine_->piece(token);
    const auto line_end = one_line && !answer.text.empty() ? piece.find('\n') : std::string::npos;
    answer.text += piece.substr(0, line_end);
    if (line_end != std::string::npos || answer.answer_tokens == question.answer_tokens_max) break;
    const BatchToken next{token, at, kMain, true};
    MODELD_TRY_VOID(engine_->compute(std::span(&next, 1)));
    row = 0;
    ++at;
  }
  answer.text.erase(0, std::min(answer.text.find_first_not_of(" \n\t"), answer.text.size()));
  answer.decode_seconds = watch.seconds();
  return {};
}

}  // namespace modeld
