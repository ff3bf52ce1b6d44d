// Ingest: text into parked, indexed blocks. Exact mode keeps everything in sequence 0. Extended mode computes each
// block once, in one of two ways that the reading policy names:
//
//   isolated: in a lane of its own, behind the sinks and a run-up that is dropped. Several lanes fill a batch. The cost
//   of a token does
//             not depend on the stream's length, nor does the block's KV depend on anything but sinks, run-up and its
//             own tokens. A block that the stream had before, behind the same run-up, is not computed again.
//   streamed: in sequence 0, behind sinks and a window of what came before. When places run out the window moves down
//   (one
//             amortised shift), and what leaves it has long been parked.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "session/session_impl.h"
#include "stream/sentences.h"

namespace modeld {
namespace {

/// Blocks that need no computing go by too fast to tell of each.
constexpr std::size_t kReportBlocks = 64;

std::span<const Token> slice(const std::vector<Token>& tokens, StreamRange range) {
  return std::span(tokens).subspan(static_cast<std::size_t>(range.begin.get()), static_cast<std::size_t>(range.size()));
}

/// Rows [row, row + count) of every recorded key head, each `dim` wide.
std::vector<std::vector<float>> key_rows(const Observation& seen, std::size_t row, std::size_t count, std::size_t dim) {
  std::vector<std::vector<float>> rows;
  for (const std::vector<float>& all : seen.keys) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * dim);
    rows.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count * dim));
  }
  return rows;
}

Status check_cancel(const CancelFlag* cancel) {
  if (cancel == nullptr || !cancel->requested()) return {};
  return fail(ErrorCode::cancelled, "Cancelled; what was completed is kept, and the next call goes on from there.");
}

}  // namespace

void SessionImpl::leave_exact() {
  // What was computed densely is computed again, block by block.
  exact_ = false;
  drop_exact();
  engine_.close_context();
  cells_ = 0;
  resident_.valid = false;
}

void SessionImpl::drop_exact() {
  // Tokens computed once for an earlier answer stay counted there; now they are computed again.
  since_.recomputed += exact_end_.get();
  since_.computed -= exact_end_.get();
  exact_end_ = StreamPos(0);
}

Status SessionImpl::ingest(const ProgressSink& progress, const CancelFlag* cancel) {
  const Stopwatch watch;
  MODELD_TRY_VOID(check_cancel(cancel));
  engine_.clear_cancel();
  take_engine();
  MODELD_TRY(const IngestPlan plan, this->plan());
  if (exact_ != plan.exact) resident_.valid = false;
  if (exact_ && !plan.exact) leave_exact();
  if (!exact_ && plan.exact && cells_ > 0) MODELD_TRY_VOID(trim_main(Place(0)));
  exact_ = plan.exact;
  Status status = exact_ ? ingest_exact(progress, cancel) : ingest_extended(progress, cancel);
  since_.ingest_seconds += watch.seconds();
  if (!status) note_failure(status.error());
  return status;
}

Status SessionImpl::ingest_exact(const ProgressSink& progress, const CancelFlag* cancel) {
  const std::int64_t total = text_.end().get();
  const auto wanted =
      static_cast<std::int32_t>(std::min<std::int64_t>(exact_limit(), total + exact_room_ + settings_.answer_tokens));
  if (cells_ < wanted) {
    drop_exact();
    MODELD_TRY_VOID(open_cells(wanted));
  }
  MODELD_TRY_VOID(engine_.observe({}));
  while (exact_end_ < text_.end()) {
    MODELD_TRY_VOID(check_cancel(cancel));
    const StreamPos end = std::min(text_.end(), exact_end_ + kBatchTokens);
    MODELD_TRY_VOID(compute_range({exact_end_, end}, Place(static_cast<std::int32_t>(exact_end_.get())), false));
    since_.computed += end - exact_end_;
    exact_end_ = end;
    report(progress, "reading the text", static_cast<std::uint64_t>(end.get()), static_cast<std::uint64_t>(total),
           "tokens");
  }
  return {};
}

Status SessionImpl::ingest_extended(const ProgressSink& progress, const CancelFlag* cancel) {
  const StreamPos from = blocks_done() > 0 ? blocks_[blocks_done() - 1].range.end
                                           : StreamPos(std::min<std::int64_t>(policy_.sinks, text_.end().get()));
  blocks_.resize(blocks_done());
  const std::vector<Block> fresh = text_.cut(from, kBlockLimits);
  blocks_.insert(blocks_.end(), fresh.begin(), fresh.end());
  if (blocks_done() < blocks_.size() || sinks_end() == StreamPos(0)) {
    if (cells_ == 0) MODELD_TRY_VOID(open_context(0));
    MODELD_TRY_VOID(ingest_sinks());
    const Stopwatch watch;
    const std::int64_t before = since_.computed + since_.recomputed;
    MODELD_TRY_VOID(policy_.origin == KvOrigin::isolated ? ingest_isolated(progress, cancel)
                                                         : ingest_streamed(progress, cancel));
    const std::int64_t done = since_.computed - before + since_.recomputed;
    if (done >= kBatchTokens) speeds_.ingest = static_cast<double>(done) / watch.seconds();
  }
  const Status resident = make_resident();
  save();
  if (resident) forget_formers();
  return resident;
}

Status SessionImpl::ingest_sinks() {
  const StreamPos end(std::min<std::int64_t>(policy_.sinks, text_.end().get()));
  if (sinks_end() != StreamPos(0)) {
    // Known already. A new context has to compute them again; a used one keeps them and drops the rest for the lanes.
    if (engine_.extent(kMain).empty()) {
      return place_kept(KeptSlot::sinks, {StreamPos(0), sinks_end()}, Place(0));
    }
    resident_.valid = false;
    return trim_main(Place(static_cast<std::int32_t>(sinks_end().get())));
  }
  MODELD_TRY_VOID(trim_main(Place(0)));
  if (take_over_sinks(end)) return place_kept(KeptSlot::sinks, {StreamPos(0), end}, Place(0));
  const std::vector<KvHeadRef> heads(index_->keys().kv_heads().begin(), index_->keys().kv_heads().end());
  MODELD_TRY_VOID(engine_.observe(ObserveSpec{{}, heads, true}));
  MODELD_TRY_VOID(compute_range({StreamPos(0), end}, Place(0), true));
  index_->append_sinks(engine_.observation().keys, static_cast<std::int32_t>(end.get()));
  since_.computed += end.get();
  keep(KeptSlot::sinks, {StreamPos(0), end}, Place(0));
  return {};
}

StreamRange SessionImpl::run_up_of(StreamRange block) const {
  return {std::max(sinks_end(), block.begin - policy_.run_up), block.begin};
}

Status SessionImpl::ingest_isolated(const ProgressSink& progress, const CancelFlag* cancel) {
  const auto total = static_cast<std::uint64_t>(text_.end().get());
  const auto tell = [&] {
    report(progress, "reading the text", static_cast<std::uint64_t>(blocks_[blocks_done() - 1].range.end.get()), total,
           "tokens");
  };
  while (blocks_done() < blocks_.size()) {
    MODELD_TRY_VOID(check_cancel(cancel));
    if (const std::optional<KnownBlock> known = known_block(blocks_done())) {
      MODELD_TRY_VOID(take_over(blocks_done(), *known));
      if (blocks_done() % kReportBlocks == 0 || blocks_done() == blocks_.size()) tell();
      continue;
    }
    std::vector<StreamRange> group;
    std::int64_t tokens = 0;
    while (group.size() < static_cast<std::size_t>(kLanes) && blocks_done() + group.size() < blocks_.size()) {
      const std::size_t next = blocks_done() + group.size();
      if (!group.empty() && known_block(next)) break;
      const StreamRange range = blocks_[next].range;
      const std::int64_t more = range.end - run_up_of(range).begin;
      const std::int64_t room = std::min<std::int64_t>(kBatchTokens, cells_ - sinks_end().get());
      if (!group.empty() && tokens + more > room) break;
      group.push_back(range);
      tokens += more;
    }
    MODELD_TRY(Isolated done, compute_isolated(group));
    for (std::size_t i = 0; i < group.size(); ++i) {
      MODELD_TRY_VOID(park(blocks_done(), std::move(done.payloads[i]), done.keys[i]));
      since_.computed += group[i].size();
      since_.recomputed += run_up_of(group[i]).size();
    }
    tell();
    save_if_due();
  }
  return {};
}

BlockKey SessionImpl::key_of(std::size_t block) const {
  const StreamRange range = blocks_[block].range;
  const std::span<const Token> tokens = slice(text_.tokens(), range);
  const Digest128 identity = this->identity().digest();
  const Digest128 sinks = hash_tokens(slice(text_.tokens(), {StreamPos(0), sinks_end()}));
  if (policy_.origin == KvOrigin::isolated)
    return isolated_key(identity, sinks, slice(text_.tokens(), run_up_of(range)), tokens);
  const std::optional<BlockRecord> before = block == 0 ? std::nullopt : store_.record(id_, blocks_[block - 1].range);
  return streamed_key(identity, sinks, policy_.stream_window, before ? before->key : BlockKey{}, tokens);
}

std::optional<KnownBlock> SessionImpl::known_block(std::size_t block) const {
  const BlockKey key = key_of(block);
  if (!store_.has(key)) return std::nullopt;
  if (const auto first = index_->find(key)) return KnownBlock{key, index_.get(), *first};
  for (const FormerStream& former : formers_)
    if (const auto first = former.index->find(key)) return KnownBlock{key, former.index.get(), *first};
  return std::nullopt;
}

Result<Isolated> SessionImpl::compute_isolated(std::span<const StreamRange> ranges) {
  MODELD_CHECK(ranges.size() <= static_cast<std::size_t>(kLanes));
  const std::vector<KvHeadRef> heads(index_->keys().kv_heads().begin(), index_->keys().kv_heads().end());
  MODELD_TRY_VOID(engine_.observe(ObserveSpec{{}, heads, true}));
  const Place first(static_cast<std::int32_t>(sinks_end().get()));
  const auto clear_lanes = [&] {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      // Failing to empty a lane means a poisoned context, which the failed step reports itself.
      static_cast<void>(engine_.evict(static_cast<SeqId>(1 + i), PlaceRange{Place(0), Place(INT32_MAX)}));
    }
  };
  std::vector<BatchToken> batch;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto lane = static_cast<SeqId>(1 + i);
    if (Status shared = engine_.share(kMain, lane, {Place(0), first}); !shared) {
      clear_lanes();
      return tl::unexpected(std::move(shared).error());
    }
    Place at = first;
    for (const Token token : slice(text_.tokens(), {run_up_of(ranges[i]).begin, ranges[i].end})) {
      batch.push_back(BatchToken{token, at, lane, false});
      ++at;
    }
  }
  if (Status computed = engine_.compute(batch); !computed) {
    clear_lanes();
    return tl::unexpected(std::move(computed).error());
  }
  Isolated result;
  std::size_t row = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto run_up = static_cast<std::int32_t>(run_up_of(ranges[i]).size());
    const auto size = static_cast<std::int32_t>(ranges[i].size());
    auto payload = engine_.export_range(static_cast<SeqId>(1 + i), {first + run_up, first + run_up + size});
    if (!payload) {
      clear_lanes();
      return tl::unexpected(std::move(payload).error());
    }
    result.payloads.push_back(std::move(*payload));
    row += static_cast<std::size_t>(run_up);
    result.keys.push_back(key_rows(engine_.observation(), row, static_cast<std::size_t>(size),
                                   static_cast<std::size_t>(index_->keys().key_dim())));
    row += static_cast<std::size_t>(size);
  }
  clear_lanes();
  return result;
}

Status SessionImpl::put(std::size_t block, const BlockKey& key, KvPayload payload) {
  MODELD_TRY_VOID(charge());
  const StreamRange range = blocks_[block].range;
  MODELD_TRY(const BlockRecord kept, store_.put(id_, range, blocks_[block].cls, policy_.origin, key,
                                                slice(text_.tokens(), range), std::move(payload), turn_));
  static_cast<void>(kept);
  return {};
}

Result<KvPayload> SessionImpl::to_park(KvPayload payload) const {
  if (!settings_.cold_type || *settings_.cold_type == settings_.kv_type) return payload;
  return engine_.pack(payload, *settings_.cold_type);
}

Status SessionImpl::park(std::size_t block, KvPayload payload, std::span<const std::vector<float>> keys) {
  const BlockKey key = key_of(block);
  const std::string text = text_.text(blocks_[block].range);
  // Whatever may fail comes before anything of the block is kept.
  std::vector<std::vector<float>> meaning;
  if (settings_.embedder != nullptr) {
    MODELD_TRY(meaning, settings_.embedder->embed(sentences_of(text)));
  }
  MODELD_TRY(KvPayload parked, to_park(std::move(payload)));
  MODELD_TRY_VOID(put(block, key, std::move(parked)));
  index_->append({key, blocks_[block].range, text}, keys, meaning);
  return {};
}

Status SessionImpl::take_over(std::size_t block, const KnownBlock& known) {
  const std::string text = text_.text(blocks_[block].range);
  MODELD_TRY_VOID(put(block, known.key, {}));
  index_->append_copy({known.key, blocks_[block].range, text}, *known.index, known.block);
  if (known.index != index_.get()) since_.taken_over += blocks_[block].range.size();
  return {};
}

Status SessionImpl::ingest_streamed(const ProgressSink& progress, const CancelFlag* cancel) {
  while (blocks_done() < blocks_.size()) {
    const std::optional<KnownBlock> known = known_block(blocks_done());
    if (!known) break;
    MODELD_TRY_VOID(take_over(blocks_done(), *known));
  }
  const Place sinks(static_cast<std::int32_t>(sinks_end().get()));
  const std::int32_t window = std::min(policy_.stream_window, cells_ - sinks.get() - kBlockLimits.max_tokens);
  // Places go up to twice the window before it moves down, so that one shift serves a whole window of tokens.
  const Place limit(std::min(sinks.get() + 2 * window + kBatchTokens, engine_.geometry().trained_window));
  Place next = sinks;    // where the next token goes
  Place oldest = sinks;  // where the window begins
  if (blocks_done() > 0) {
    // Going on after an interruption or an earlier text: the window before is computed again, so that the blocks to
    // come see it.
    const StreamPos end = blocks_[blocks_done() - 1].range.end;
    const StreamRange before{std::max(sinks_end(), end - window), end};
    MODELD_TRY_VOID(compute_range(before, sinks, false));
    since_.recomputed += before.size();
    next += static_cast<std::int32_t>(before.size());
  }
  const std::vector<KvHeadRef> heads(index_->keys().kv_heads().begin(), index_->keys().kv_heads().end());
  MODELD_TRY_VOID(engine_.observe(ObserveSpec{{}, heads, true}));
  while (blocks_done() < blocks_.size()) {
    MODELD_TRY_VOID(check_cancel(cancel));
    const std::int32_t room = std::min(kBatchTokens, cells_ - sinks.get() - window);
    std::int32_t tokens = 0;
    std::size_t count = 0;
    while (blocks_done() + count < blocks_.size()) {
      const auto more = static_cast<std::int32_t>(blocks_[blocks_done() + count].range.size());
      if (count > 0 && tokens + more > room) break;
      tokens += more;
      ++count;
    }
    // Make room: the window keeps at most `window` tokens, whatever is older leaves (it has its cold copy).
    const Place keep_from = std::max(oldest, next - window);
    if (keep_from > oldest) {
      MODELD_TRY_VOID(engine_.evict(kMain, {oldest, keep_from}));
      oldest = keep_from;
    }
    if (next + tokens > limit && oldest > sinks) {
      const std::int32_t delta = sinks - oldest;
      MODELD_TRY_VOID(engine_.rebase(kMain, {oldest, next}, delta));
      next += delta;
      oldest = sinks;
    }
    const StreamRange range{blocks_[blocks_done()].range.begin, blocks_[blocks_done() + count - 1].range.end};
    MODELD_TRY_VOID(compute_range(range, next, true));
    std::size_t row = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const StreamRange block = blocks_[blocks_done()].range;
      const Place at = next + static_cast<std::int32_t>(block.begin - range.begin);
      const auto size = static_cast<std::int32_t>(block.size());
      MODELD_TRY(KvPayload payload, engine_.export_range(kMain, {at, at + size}));
      const auto keys = key_rows(engine_.observation(), row, static_cast<std::size_t>(size),
                                 static_cast<std::size_t>(index_->keys().key_dim()));
      MODELD_TRY_VOID(park(blocks_done(), std::move(payload), keys));
      row += static_cast<std::size_t>(size);
      since_.computed += size;
    }
    next += tokens;
    report(progress, "reading the text", static_cast<std::uint64_t>(range.end.get()),
           static_cast<std::uint64_t>(text_.end().get()), "tokens");
    save_if_due();
  }
  return {};
}

}  // namespace modeld
