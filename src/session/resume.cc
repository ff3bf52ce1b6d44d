// A session that outlives its process: what was written of it is taken up again, and what it does is written down.
#include <algorithm>
#include <utility>

#include "session/session_impl.h"

namespace modeld {

Identity SessionImpl::identity() const {
  Identity identity = engine_.identity();
  identity.kv_type = to_text(settings_.kv_type);
  return identity;
}

Status SessionImpl::resume() {
  Identity identity = this->identity();
  settings_.state->set_identity(identity.digest());
  identity.calibration = calibration_.digest();
  const std::string embedder = settings_.embedder == nullptr ? "" : settings_.embedder->name();
  MODELD_TRY(durable_, Durable::open(*settings_.state, settings_.name, identity, form_of(policy_, embedder)));
  policy_.origin = durable_->form().origin;
  policy_.sinks = durable_->form().sinks;
  policy_.run_up = durable_->form().run_up;
  policy_.stream_window = durable_->form().stream_window;
  turn_ = durable_->turn();
  MODELD_TRY(std::vector<PartRow> parts, durable_->take_parts());
  for (PartRow& part : parts) MODELD_TRY_VOID(text_.append_stored(std::move(part)));
  Status taken = take_blocks();
  if (taken) return charge_index();
  if (taken.error().code != ErrorCode::state_damaged) return taken;
  // The text is there; what was made of it is made again.
  forget_blocks();
  MODELD_TRY_VOID(durable_->begin_again());
  storage_error_ = std::move(taken).error();
  storage_error_->message += " All of the session's text is computed again.";
  return {};
}

Status SessionImpl::take_blocks() {
  MODELD_TRY(const Durable::Indexed stored, durable_->take_blocks());
  const auto damaged = [](std::string what) { return fail(ErrorCode::state_damaged, std::move(what)); };
  if (durable_->sinks_end() > text_.end() || stored.tokens > text_.end().get())
    return damaged("More was computed of the session than its text has.");
  if (!index_->load(stored.index, stored.tokens)) return damaged("The session's recall index has another size.");
  sinks_end_ = durable_->sinks_end();
  for (const BlockRow& row : stored.blocks) {
    if (row.segment >= text_.segments().size()) return damaged("A block of the session belongs to no part of it.");
    blocks_.push_back({row.range, row.segment, row.cls});
    if (key_of(blocks_done_) != row.key) return damaged("A block of the session is not what its text gives.");
    const auto begin = static_cast<std::size_t>(row.range.begin.get());
    const auto tokens = std::span(text_.tokens()).subspan(begin, static_cast<std::size_t>(row.range.size()));
    MODELD_TRY(const BlockRecord record,
               store_.put(id_, row.range, row.cls, row.origin, row.key, tokens, {}, row.last_use));
    static_cast<void>(record);
    lexical_.append(text_.text(row.range));
    if (sentences_ != nullptr && !sentences_->append_bytes(row.meaning))
      return damaged("The meaning of a block of the session has another size.");
    first_with_key_.emplace(row.key, row.range);
    ++blocks_done_;
  }
  return {};
}

void SessionImpl::forget_blocks() {
  blocks_.clear();
  blocks_done_ = 0;
  sinks_end_ = StreamPos(0);
  first_with_key_.clear();
  index_->truncate(StreamPos(0));
  lexical_.truncate(0);
  if (sentences_ != nullptr) sentences_->truncate(0);
  store_.erase(id_);
  resident_.valid = false;
}

void SessionImpl::save(std::size_t least) {
  if (durable_ == nullptr || blocks_done_ - durable_->blocks() < least) return;
  const DoneStream done{text_, std::span(blocks_).first(blocks_done_), sinks_end_, *index_, sentences_.get(), store_,
                        id_};
  note_storage(durable_->save(done));
}

void SessionImpl::note_storage(const Status& status) {
  if (!status) storage_error_ = status.error();
}

std::optional<Error> SessionImpl::take_storage_error() {
  if (std::optional<Error> below = store_.take_tier_error(); below && !storage_error_) storage_error_ = below;
  return std::exchange(storage_error_, std::nullopt);
}

void SessionImpl::note_use(const Answer& answer) {
  if (durable_ == nullptr) return;
  std::vector<StreamPos> fetched;
  for (const Passage& passage : answer.retrieved) {
    const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                    [&](const Block& b) { return b.range.contains(passage.range.begin); });
    if (block != blocks_.end()) fetched.push_back(block->range.begin);
  }
  note_storage(durable_->touch(turn_, fetched));
}

BlockKey SessionImpl::kept_key(StreamRange range, Place at) const {
  Hasher hasher;
  hasher.text("kept").digest(identity().digest());
  const auto add = [&](StreamRange tokens) {
    hasher.values(std::span(text_.tokens())
                      .subspan(static_cast<std::size_t>(tokens.begin.get()), static_cast<std::size_t>(tokens.size())));
  };
  // Its KV depends on all that stands before it in sequence 0.
  add({StreamPos(0), sinks_end_});
  for (const ResidentRange& before : resident_.ranges) {
    add(before.range);
    hasher.number(static_cast<std::uint64_t>(before.at.get()));
  }
  add(range);
  return hasher.number(static_cast<std::uint64_t>(at.get())).finish();
}

void SessionImpl::keep(KeptSlot slot, StreamRange range, Place at) {
  if (durable_ == nullptr || range.empty()) return;
  const auto payload = engine_.export_range(kMain, {at, at + static_cast<std::int32_t>(range.size())});
  // What a windowed layer has lost already is computed again after a restart.
  if (payload) note_storage(durable_->keep(slot, kept_key(range, at), *payload));
}

Status SessionImpl::place_kept(KeptSlot slot, StreamRange range, Place at) {
  if (const BlockKey key = kept_key(range, at); durable_ != nullptr && durable_->keeps(key)) {
    const Result<KvPayload> payload = durable_->kept(key);
    if (payload && engine_.admit(kMain, *payload, at)) return {};
    if (!payload) storage_error_ = payload.error();
  }
  MODELD_TRY_VOID(compute_range(range, at, false));
  since_.recomputed += range.size();
  keep(slot, range, at);
  return {};
}

}  // namespace modeld
