#include "session/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "session/session_impl.h"

namespace modeld {
Result<std::unique_ptr<Session>> Session::create(Engine& engine, ColdStore& store, const Calibration& calibration,
                                                 const SessionSettings& settings) {
  if (settings.follow < 0) return fail(ErrorCode::bad_argument, "There cannot be fewer than 0 further passages.");
  if (settings.hot_tokens <= 0 || settings.answer_tokens <= 0) {
    return fail(ErrorCode::bad_argument, "The hot set and the answer need a positive number of tokens each.",
                {{"hot_tokens", settings.hot_tokens}, {"answer_tokens", settings.answer_tokens}});
  }
  if (settings.cold_type && settings.kv_type != KvType::f16)
    return fail(ErrorCode::unsupported_kv_type, "Only f16 KV can be parked in another format.");
  const ModelGeometry& geometry = engine.geometry();
  if (settings.hot_tokens > geometry.trained_window) {
    return fail(
        ErrorCode::hot_too_large,
        fmt::format("A hot set of {} tokens is larger than the model's trained window of {}; ask for no more than "
                    "the window.",
                    settings.hot_tokens, geometry.trained_window),
        {{"hot_tokens", settings.hot_tokens}, {"trained_window", geometry.trained_window}});
  }
  if (calibration.heads.empty()) {
    return fail(ErrorCode::calibration_failed, "This model has no calibrated retrieval heads; run modeld calibrate.");
  }
  for (const HeadMass& head : calibration.heads) {
    const auto layer = static_cast<std::size_t>(head.head.layer);
    if (head.head.layer < 0 || layer >= geometry.layers.size() || head.head.head < 0 ||
        head.head.head >= geometry.layers[layer].heads) {
      return fail(ErrorCode::calibration_failed,
                  "The calibration names a head that this model does not have; run modeld calibrate --force.");
    }
  }
  MODELD_TRY(PromptFrame frame, make_frame(engine));
  auto session = std::make_unique<SessionImpl>(engine, store, calibration, settings, std::move(frame));
  if (settings.state != nullptr) MODELD_TRY_VOID(session->resume());
  return session;
}

SessionImpl::SessionImpl(Engine& engine, ColdStore& store, const Calibration& calibration,
                         const SessionSettings& settings, PromptFrame frame)
    : engine_(engine),
      store_(store),
      calibration_(calibration),
      settings_(settings),
      policy_(settings.reading.value_or(calibration.reading)),
      frame_(std::move(frame)),
      id_(store.new_session()),
      holder_(id_.value),
      text_(frame_) {
  index_ = new_index();
}

std::unique_ptr<BlockIndex> SessionImpl::new_index() const {
  const std::vector<KvHeadRef> heads = index_heads(engine_.geometry(), calibration_.heads);
  const auto layer = static_cast<std::size_t>(heads.front().layer);
  const std::int32_t meaning = settings_.embedder == nullptr ? 0 : settings_.embedder->dim();
  return std::make_unique<BlockIndex>(heads, engine_.geometry().layers[layer].key_dim, meaning);
}

SessionImpl::~SessionImpl() {
  store_.erase(id_);
  for (const FormerStream& former : formers_) store_.erase(former.id);
}

void SessionImpl::take_engine() {
  if (engine_.holder() == holder_) return;
  engine_.set_holder(holder_);
  cells_ = 0;
  drop_exact();
  resident_.valid = false;
}

std::int32_t SessionImpl::exact_limit() const {
  return std::min(settings_.hot_tokens, engine_.geometry().trained_window);
}

bool SessionImpl::fits_exact(std::int64_t question_tokens) const {
  return text_.end().get() + question_tokens + settings_.answer_tokens <= exact_limit();
}

Result<QuestionTokens> SessionImpl::tokenise(const Question& question) const {
  if (question.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return fail(ErrorCode::bad_argument, "The question is empty.");
  }
  QuestionTokens tokens;
  MODELD_TRY(tokens.before, engine_.tokenize(frame_.before_question, false, false));
  MODELD_TRY(tokens.content, engine_.tokenize(question.text, false, false));
  tokens.after = frame_.after_question;
  if (!question.answer_prefix.empty()) {
    const std::string prefix = (frame_.chat ? "" : " ") + question.answer_prefix;
    MODELD_TRY(const std::vector<Token> begun, engine_.tokenize(prefix, false, false));
    tokens.begun = static_cast<std::int32_t>(begun.size());
    tokens.after.insert(tokens.after.end(), begun.begin(), begun.end());
  }
  return tokens;
}

void SessionImpl::note_failure(const Error& error) {
  if (error.code != ErrorCode::engine_failed && error.code != ErrorCode::engine_poisoned) return;
  // The context is lost. Text, blocks, payloads and index are not: the next call opens a new one and goes on.
  engine_.close_context();
  cells_ = 0;
  exact_end_ = StreamPos(0);
  resident_.valid = false;
}

Status SessionImpl::append(std::span<const TextPart> parts, const CancelFlag* cancel) {
  MODELD_TRY_VOID(text_.append(engine_, parts, cancel));
  resident_.valid = false;
  save();
  return {};
}

std::vector<StreamRange> SessionImpl::blocks() const {
  std::vector<StreamRange> ranges;
  ranges.reserve(blocks_.size());
  for (const Block& block : blocks_) ranges.push_back(block.range);
  return ranges;
}

Result<IngestPlan> SessionImpl::plan() const {
  IngestPlan plan;
  plan.stream_tokens = text_.end().get();
  const auto question = static_cast<std::int64_t>(frame_.after_question.size()) + kQuestionRoom / 4;
  plan.done_tokens = exact_end_.get();
  plan.exact = settings_.context != ContextMode::focus && blocks_done() == 0 && fits_exact(question);
  if (settings_.context == ContextMode::exact && !plan.exact) {
    return fail(
        ErrorCode::context_overflow,
        fmt::format("The text takes {} tokens and an answer {}; exact mode holds {} in all. Use --context auto, or a "
                    "shorter text.",
                    plan.stream_tokens, settings_.answer_tokens, exact_limit()),
        {{"prompt_tokens", plan.stream_tokens},
         {"answer_tokens", settings_.answer_tokens},
         {"exact_tokens", exact_limit()}});
  }
  const std::int64_t per_token = engine_.geometry().kv_bytes_per_token(settings_.cold_type.value_or(settings_.kv_type));
  plan.kv_bytes = plan.stream_tokens * per_token;
  if (plan.exact) return plan;
  if (blocks_done() > 0) plan.done_tokens = blocks_[blocks_done() - 1].range.end.get();
  const StreamPos from(std::min<std::int64_t>(policy_.sinks, plan.stream_tokens));
  const std::vector<Block> blocks = text_.cut(from, kBlockLimits);
  plan.blocks = static_cast<std::int64_t>(blocks.size());
  plan.index_bytes = plan.stream_tokens * index_->keys().bytes_per_token();
  // Index and tokens must fit; payloads may be dropped and computed again.
  const std::int64_t least = plan.index_bytes + 2 * text_.bytes();
  if (const StoreUsage usage = store_.usage(); least > usage.budget_bytes) {
    return fail(
        ErrorCode::host_budget_exceeded,
        fmt::format("The recall index and tokens of {} tokens need {} bytes of host memory; the budget is {}. Give "
                    "more with --host-budget, or less text.",
                    plan.stream_tokens, least, usage.budget_bytes),
        {{"needed_bytes", least}, {"budget_bytes", usage.budget_bytes}, {"prompt_tokens", plan.stream_tokens}});
  }
  const double speed = speeds_.ingest > 0.0 ? speeds_.ingest : calibration_.prefill_tokens_per_second;
  if (speed > 0.0) {
    const StreamPos done = blocks_done() == 0 ? StreamPos(0) : blocks_[blocks_done() - 1].range.end;
    std::int64_t tokens = text_.end() - done;
    if (policy_.origin == KvOrigin::isolated) {
      for (const Block& block : blocks)
        if (block.range.begin >= done) tokens += std::min<std::int64_t>(policy_.run_up, block.range.begin - from);
    }
    if (!resident_.valid) tokens += std::min<std::int64_t>(policy_.recent, plan.stream_tokens);
    plan.predicted_seconds = static_cast<double>(tokens) / speed;
  }
  return plan;
}

std::string SessionImpl::check_integrity() const {
  if (const std::string wrong = engine_.check_integrity(); !wrong.empty()) return "engine: " + wrong;
  if (const std::string wrong = store_.check_integrity(); !wrong.empty()) return "store: " + wrong;
  StreamPos at = sinks_end();
  for (std::size_t b = 0; b < blocks_done(); ++b) {
    if (blocks_[b].range.begin != at) return fmt::format("block {} does not begin where the one before it ends", b);
    at = blocks_[b].range.end;
  }
  if (index_->end() != at) return fmt::format("index ends at {}, blocks at {}", index_->end().get(), at.get());
  if (const std::string wrong = index_->check_integrity(); !wrong.empty()) return "index: " + wrong;
  if (store_.records(id_).size() != blocks_done()) return "the store has another number of blocks";
  if (engine_.holder() != holder_) return "";
  if (!exact_ && resident_.valid && engine_.extent(kMain) != PlaceRange{Place(0), resident_.end}) {
    return fmt::format("sequence 0 ends at {}, the plan at {}", engine_.extent(kMain).end.get(), resident_.end.get());
  }
  for (SeqId lane = 1; lane <= kLanes && cells_ > 0 && !exact_; ++lane) {
    if (!engine_.extent(lane).empty()) return fmt::format("lane {} is not empty", lane);
  }
  return "";
}

}  // namespace modeld
