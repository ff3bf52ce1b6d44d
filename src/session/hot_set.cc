// The resident layout of sequence 0 between questions: sinks, pinned, recent — compact, in that order, laid out the
// same way each time, so that a question finds the same cells whether it is the first or the hundredth.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "session/session_impl.h"

namespace modeld {

Status SessionImpl::open_context(std::int32_t question_tokens) {
  const std::int32_t hot = settings_.hot_tokens;
  std::int64_t pinned = 0;
  for (const Block& block : blocks_) {
    if (block.cls != CacheClass::volatile_) pinned += block.range.size();
  }
  const std::int32_t room = std::max(question_tokens, std::min(kQuestionRoom, hot / 8));
  // What is pinned comes before a wide recent window and many passages, up to half of the hot set.
  const auto pinned_room = static_cast<std::int32_t>(std::min<std::int64_t>(pinned, hot / 2));
  const auto shaped = [&](std::int32_t tokens) {
    ReadingPolicy policy = policy_;
    policy.blocks += settings_.follow;
    return shape_turn(policy, tokens, room, settings_.answer_tokens, kBlockLimits.max_tokens);
  };
  Result<TurnShape> shape = shaped(hot - pinned_room);
  if (!shape && pinned_room > 0) shape = shaped(hot);
  if (!shape) return tl::unexpected(std::move(shape).error());
  std::int64_t cells = shape->cells + std::int64_t{pinned_room};
  if (policy_.origin == KvOrigin::streamed) {
    cells = std::max<std::int64_t>(cells, shape->sinks + policy_.stream_window + kBatchTokens);
  }
  MODELD_TRY_VOID(open_cells(static_cast<std::int32_t>(std::min<std::int64_t>(cells, hot))));
  shape_ = *shape;
  return {};
}

Status SessionImpl::open_cells(std::int32_t cells) {
  ContextSpec spec;
  spec.cells = cells;
  spec.sequences = 1 + kLanes;
  spec.kv_type = settings_.kv_type;
  spec.batch = kBatchTokens;
  spec.threads = settings_.threads;
  resident_.valid = false;
  cells_ = 0;
  // One that is open and large enough is emptied: that takes nothing, opening one takes as long as many tokens.
  const ContextSpec& open = engine_.context();
  bool usable = open.cells >= cells && open.kv_type == spec.kv_type && open.sequences >= spec.sequences &&
                open.batch == spec.batch && (spec.threads == 0 || open.threads == spec.threads);
  for (SeqId sequence = 0; usable && sequence < spec.sequences; ++sequence)
    usable = engine_.evict(sequence, {Place(0), Place(INT32_MAX)}).has_value();
  if (!usable) MODELD_TRY_VOID(engine_.open_context(spec));
  cells_ = spec.cells;
  return {};
}

Status SessionImpl::compute_range(StreamRange range, Place at, bool observed) {
  if (range.empty()) return {};
  if (!observed) MODELD_TRY_VOID(engine_.observe({}));
  std::vector<BatchToken> batch;
  batch.reserve(static_cast<std::size_t>(range.size()));
  for (StreamPos pos = range.begin; pos < range.end; ++pos, ++at) {
    batch.push_back(BatchToken{text_.tokens()[static_cast<std::size_t>(pos.get())], at, kMain, false});
  }
  return engine_.compute(batch);
}

Status SessionImpl::trim_main(Place end) { return engine_.evict(kMain, {end, Place(INT32_MAX)}); }

StreamRange SessionImpl::recent_range() const {
  if (blocks_done() == 0) return {sinks_end(), sinks_end()};
  const StreamPos end = blocks_[blocks_done() - 1].range.end;
  StreamPos begin = blocks_[blocks_done() - 1].range.begin;
  for (std::size_t b = blocks_done() - 1; b-- > 0;) {
    if (end - blocks_[b].range.begin > shape_.recent) break;
    begin = blocks_[b].range.begin;
  }
  return {begin, end};
}

bool SessionImpl::is_resident(std::size_t block) const {
  return std::any_of(resident_.ranges.begin(), resident_.ranges.end(),
                     [&](const ResidentRange& r) { return r.range.overlaps(blocks_[block].range); });
}

std::vector<BlockView> SessionImpl::views(std::span<const double> scores) const {
  const StreamRange recent = recent_range();
  std::vector<BlockView> views;
  views.reserve(blocks_done());
  for (std::size_t b = 0; b < blocks_done(); ++b) {
    BlockView view;
    view.range = blocks_[b].range;
    view.cls = blocks_[b].cls;
    const bool hot = resident_.valid && is_resident(b);
    const std::optional<BlockRecord> record = store_.record(id_, view.range);
    // A question finds what is resident, and adds to it; before that only the recent window is sure of its place.
    view.always = scores.empty() ? recent.overlaps(view.range) : hot;
    view.residence = hot ? Residence::hot : record && record->has_payload ? Residence::cold : Residence::dropped;
    view.last_use = record ? record->last_use : 0;
    view.score = scores.empty() ? 0.0 : scores[b];
    views.push_back(view);
  }
  return views;
}

Result<HotSetPlan> SessionImpl::plan_hot(std::span<const double> scores, std::int32_t question_tokens,
                                         std::int32_t blocks_max) const {
  const std::vector<BlockView> blocks = views(scores);
  HotSetRequest request;
  request.blocks = blocks;
  request.budget_tokens =
      cells_ - static_cast<std::int32_t>(sinks_end().get()) - question_tokens - settings_.answer_tokens;
  request.retrieved_max = std::min(blocks_max, shape_.blocks);
  request.pinned_share = 0.0;
  if (scores.empty() && request.budget_tokens > 0)
    request.pinned_share = std::min(1.0, settings_.hot_tokens / 2.0 / request.budget_tokens);
  return plan_hot_set(request);
}

Status SessionImpl::make_resident() {
  if (resident_.valid) return {};
  if (cells_ == 0) MODELD_TRY_VOID(open_context(0));
  MODELD_TRY_VOID(ingest_sinks());
  const Place sinks(static_cast<std::int32_t>(sinks_end().get()));
  // Pinned blocks get what room the retrieved ones and a question leave, at most half.
  const std::int32_t retrieved = shape_.blocks * kBlockLimits.max_tokens;
  MODELD_TRY(const HotSetPlan plan, plan_hot({}, std::min(kQuestionRoom, settings_.hot_tokens / 8) + retrieved, 0));
  std::vector<std::size_t> chosen = plan.keep;
  chosen.insert(chosen.end(), plan.fetch.begin(), plan.fetch.end());
  std::sort(chosen.begin(), chosen.end());
  const StreamRange recent = recent_range();
  resident_.ranges.clear();
  Place at = sinks;
  for (const std::size_t b : chosen) {
    if (recent.overlaps(blocks_[b].range) || blocks_[b].cls == CacheClass::volatile_) continue;
    MODELD_TRY_VOID(admit_block(b, at));
    resident_.ranges.push_back({blocks_[b].range, at});
    at += static_cast<std::int32_t>(blocks_[b].range.size());
  }
  resident_.pinned_cold_tokens = 0;
  for (const std::size_t b : plan.pinned_cold) resident_.pinned_cold_tokens += blocks_[b].range.size();
  MODELD_TRY_VOID(place_kept(KeptSlot::recent, recent, at));
  if (!recent.empty()) resident_.ranges.push_back({recent, at});
  resident_.end = at + static_cast<std::int32_t>(recent.size());
  resident_.valid = true;
  return {};
}

Status SessionImpl::admit_block(std::size_t block, Place at) {
  const StreamRange range = blocks_[block].range;
  std::shared_ptr<const KvPayload> payload = store_.fetch(id_, range, turn_);
  if (payload == nullptr) {
    // Dropped: computed again behind sinks and run-up, from its tokens alone.
    const std::array ranges = {range};
    MODELD_TRY(Isolated again, compute_isolated(ranges));
    since_.recomputed += range.size() + run_up_of(range).size();
    MODELD_TRY(KvPayload parked, to_park(std::move(again.payloads.front())));
    payload = std::make_shared<const KvPayload>(parked);
    // Whether the store has room for it again is its own business; the answer does not depend on it.
    static_cast<void>(store_.restore(id_, range, std::move(parked), turn_));
  }
  return engine_.admit(kMain, *payload, at);
}

Status SessionImpl::set_aside(PlaceRange hole) {
  // All but the last are pinned blocks, which came from the store; the recent window was computed where it stands.
  for (std::size_t i = 0; i + 1 < resident_.ranges.size(); ++i) {
    if (resident_.ranges[i].at != hole.begin) continue;
    const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                    [&](const Block& b) { return b.range == resident_.ranges[i].range; });
    resident_.aside.push_back({hole.begin, std::nullopt, static_cast<std::size_t>(block - blocks_.begin())});
    return engine_.evict(kMain, hole);
  }
  Result<KvPayload> copy = engine_.export_range(kMain, hole);
  if (!copy && copy.error().code != ErrorCode::unsupported_operation) return tl::unexpected(std::move(copy).error());
  // What a windowed layer has lost cannot be put back: the window is computed again before the next question.
  if (copy) {
    resident_.aside.push_back({hole.begin, std::move(*copy), 0});
  } else {
    resident_.lost = true;
  }
  return engine_.evict(kMain, hole);
}

Status SessionImpl::put_back() {
  const std::vector<SetAside> aside = std::exchange(resident_.aside, {});
  if (std::exchange(resident_.lost, false)) resident_.valid = false;
  MODELD_TRY_VOID(trim_main(resident_.end));
  for (const SetAside& one : aside) {
    if (!resident_.valid) break;
    const Status back = one.payload ? engine_.admit(kMain, *one.payload, one.at) : admit_block(one.block, one.at);
    if (!back) {
      resident_.valid = false;
      return back;
    }
  }
  return {};
}

}  // namespace modeld
