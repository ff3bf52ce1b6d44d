// How likely a text is as what comes after the stream. Tokens are scored a stretch at a time; each stretch is predicted
// from all that was scored before it.
//
// Without retrieval a lane shares all of sequence 0 but its last token, whose logits nobody asked for when it was
// computed; there it is computed again, and the continuation behind it. With retrieval the blocks stand before the
// recent window, so that nothing stands between a stretch and the text that it goes on from: window and stretch are
// computed behind the blocks. What they displace is laid out again before the next question.
#include <algorithm>
#include <ranges>
#include <string>
#include <utility>

#include "session/session_impl.h"

namespace modeld {
namespace {

/// Tokens that are scored from the same blocks; few enough that what they are about has not changed.
constexpr std::size_t kStretch = 64;
/// Words and meaning to look for come from at most this many tokens before a stretch, as a question's queries do.
constexpr std::size_t kQueryTokens = 256;
constexpr SeqId kLane = kLanes;

std::vector<BatchToken> batch_at(std::span<const Token> tokens, Place at, SeqId seq, std::size_t logits_from) {
  std::vector<BatchToken> batch;
  batch.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    batch.push_back(BatchToken{tokens[i], at + static_cast<std::int32_t>(i), seq, i >= logits_from});
  return batch;
}

std::span<const Token> next_stretch(const Scoring& job) {
  const std::span<const Token> left = job.continuation.subspan(job.scored.nll.size());
  return left.first(std::min(kStretch, left.size()));
}

/// Takes up a stretch's logits, from row `first` of what was just computed on.
void take_up(const Engine& engine, std::span<const Token> stretch, std::size_t first, Scoring& job) {
  for (std::size_t i = 0; i < stretch.size(); ++i)
    job.scored.nll.push_back(negative_log_likelihood(engine.logits(first + i), stretch[i]));
  report(job.progress, "scoring the text", job.scored.nll.size(), job.continuation.size(), "tokens");
}

Status check_cancel(const Scoring& job) {
  if (job.cancel == nullptr || !job.cancel->requested()) return {};
  return fail(ErrorCode::cancelled, "Cancelled while scoring.");
}

/// Text of tokens, without the parts of characters that both ends may hold.
std::string text_of(const Engine& engine, std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) text += engine.piece(token);
  const auto whole =
      std::find_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
  text.erase(text.begin(), whole);
  text.resize(whole_utf8(text));
  return text;
}

}  // namespace

Result<Scored> SessionImpl::score(std::span<const Token> continuation, const Question& how,
                                  const ProgressSink& progress, const CancelFlag* cancel) {
  const auto unknown = [&](Token token) { return token < 0 || token >= engine_.geometry().vocabulary; };
  if (continuation.empty() || text_.end() == StreamPos(0) ||
      std::any_of(continuation.begin(), continuation.end(), unknown)) {
    return fail(ErrorCode::bad_argument,
                "Scoring takes a text, and at least one token that goes on from it, each of the model's vocabulary.",
                {{"tokens", static_cast<std::int64_t>(continuation.size())}, {"stream_tokens", text_.end().get()}});
  }
  ++turn_;
  Scoring job{continuation, how, progress, cancel, {}};
  const Status status = score_ready(job);
  if (!status) {
    note_failure(status.error());
    return tl::unexpected(status.error());
  }
  return std::move(job.scored);
}

Status SessionImpl::score_ready(Scoring& job) {
  QuestionTokens room;
  room.content.assign(job.continuation.begin(), job.continuation.end());
  Answer prediction;
  const TextSink nobody;
  MODELD_TRY_VOID(make_ready({job.how, room, nobody, job.progress, job.cancel, prediction}));
  const bool reads = job.how.retrieve || job.how.oracle;
  if (!exact_ && reads && blocks_done() > 0) {
    const std::int32_t blocks = shape_.blocks * kBlockLimits.max_tokens;
    if (cells_ - resident_.end.get() < blocks + room.size()) {
      MODELD_TRY_VOID(open_context(room.size()));
      MODELD_TRY_VOID(make_resident());
    }
    return score_behind_blocks(job);
  }
  Status status =
      score_behind_stream(job, exact_ ? Place(static_cast<std::int32_t>(text_.end().get())) : resident_.end);
  // Also after an error: the lane is empty between steps.
  if (Status emptied = engine_.evict(kLane, {Place(0), Place(INT32_MAX)}); status && !emptied)
    status = std::move(emptied);
  return status;
}

Status SessionImpl::score_behind_stream(Scoring& job, Place end) {
  MODELD_TRY_VOID(engine_.observe({}));
  Place at = end - 1;
  if (at > Place(0)) MODELD_TRY_VOID(engine_.share(kMain, kLane, {Place(0), at}));
  Token before = text_.tokens().back();
  while (job.scored.nll.size() < job.continuation.size()) {
    MODELD_TRY_VOID(check_cancel(job));
    const std::span<const Token> stretch = next_stretch(job);
    // Each token is predicted after the one before it, the first of a stretch after the last of the one before.
    std::vector<Token> computed = {before};
    computed.insert(computed.end(), stretch.begin(), stretch.end() - 1);
    MODELD_TRY_VOID(engine_.compute(batch_at(computed, at, kLane, 0)));
    take_up(engine_, stretch, 0, job);
    at += static_cast<std::int32_t>(stretch.size());
    before = stretch.back();
  }
  job.scored.attended_tokens = at.get();
  return {};
}

Status SessionImpl::score_behind_blocks(Scoring& job) {
  const StreamRange recent = resident_.ranges.back().range;
  // From here on only sinks and pinned text are resident; the next question lays out everything again.
  resident_.valid = false;
  resident_.end = resident_.ranges.back().at;
  resident_.ranges.pop_back();
  const std::span<const Token> window =
      std::span(text_.tokens())
          .subspan(static_cast<std::size_t>(recent.begin.get()), static_cast<std::size_t>(recent.size()));
  std::vector<Token> behind(window.begin(), window.end());
  const std::int32_t room =
      cells_ - resident_.end.get() - static_cast<std::int32_t>(window.size() + job.continuation.size());
  while (job.scored.nll.size() < job.continuation.size()) {
    MODELD_TRY_VOID(check_cancel(job));
    MODELD_TRY_VOID(trim_main(resident_.end));
    MODELD_TRY(const std::vector<std::size_t> blocks, blocks_for(behind, job.how, room));
    // Best last, as before a question.
    Place at = resident_.end;
    for (const std::size_t block : std::ranges::reverse_view(blocks)) {
      MODELD_TRY_VOID(admit_block(block, at));
      at += static_cast<std::int32_t>(blocks_[block].range.size());
    }
    const std::span<const Token> stretch = next_stretch(job);
    const std::size_t first = behind.size() - 1;
    behind.insert(behind.end(), stretch.begin(), stretch.end());
    MODELD_TRY_VOID(engine_.observe({}));
    MODELD_TRY_VOID(engine_.compute(batch_at(std::span(behind).first(behind.size() - 1), at, kMain, first)));
    take_up(engine_, stretch, first, job);
    const std::int64_t attended = at.get() + static_cast<std::int64_t>(behind.size()) - 1;
    job.scored.attended_tokens = std::max(job.scored.attended_tokens, attended);
    job.scored.blocks_read += static_cast<std::int64_t>(blocks.size());
  }
  return {};
}

Result<std::vector<std::size_t>> SessionImpl::blocks_for(std::span<const Token> behind, const Question& how,
                                                         std::int32_t room) {
  QuestionTokens tokens;
  tokens.content.assign(behind.begin(), behind.end());
  Question query = how;
  query.text = text_of(engine_, behind.last(std::min(kQueryTokens, behind.size())));
  // What resembles the window most is the window itself, which is being read already.
  const StreamRange recent = recent_range();
  const auto present = [&](std::size_t b) { return recent.overlaps(blocks_[b].range) || is_resident(b); };
  std::int32_t count = 0;
  for (std::size_t b = 0; b < blocks_done(); ++b) count += present(b) ? 1 : 0;
  const std::int32_t wanted = std::clamp(how.blocks.value_or(policy_.blocks), 0, std::max(0, shape_.blocks));
  query.blocks = count + wanted;
  Seconds seconds;
  MODELD_TRY(const Relevance relevant, relevance(tokens, query, seconds));
  std::vector<std::size_t> chosen;
  for (const std::size_t b : relevant.blocks) {
    if (present(b)) continue;
    room -= static_cast<std::int32_t>(blocks_[b].range.size());
    if (std::cmp_equal(chosen.size(), wanted) || room < 0) break;
    chosen.push_back(b);
  }
  return chosen;
}

}  // namespace modeld
