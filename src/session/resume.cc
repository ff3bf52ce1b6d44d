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
  if (taken) return take_formers();
  if (taken.error().code != ErrorCode::state_damaged) return taken;
  // The text is there; what was made of it is made again.
  store_.erase(id_);
  index_ = new_index();
  blocks_.clear();
  MODELD_TRY_VOID(durable_->begin_again());
  Error error = std::move(taken).error();
  error.message += " All of the session's text is computed again.";
  durable_->note(std::move(error));
  return {};
}

Status SessionImpl::take_blocks() {
  MODELD_TRY(const StoredBlocks stored, durable_->take_blocks());
  const auto damaged = [](std::string what) { return fail(ErrorCode::state_damaged, std::move(what)); };
  if (stored.tokens > text_.end().get()) return damaged("More was computed of the session than its text has.");
  if (!index_->load_keys(stored.index, stored.tokens, stored.sinks))
    return damaged("The session's recall index has another size.");
  for (const BlockRow& row : stored.blocks) {
    if (row.segment >= text_.segments().size()) return damaged("A block of the session belongs to no part of it.");
    const std::size_t block = blocks_.size();
    blocks_.push_back({row.range, row.segment, row.cls});
    if (key_of(block) != row.key) return damaged("A block of the session is not what its text gives.");
    MODELD_TRY_VOID(put(block, row.key, {}));
    const std::string text = text_.text(row.range);
    if (!index_->load_block({row.key, row.range, text}, row.meaning))
      return damaged("The meaning of a block of the session has another size.");
  }
  return {};
}

Status SessionImpl::take_formers() {
  Result<std::vector<StoredBlocks>> stored = durable_->take_formers();
  // What cannot be taken over is computed.
  if (!stored) {
    durable_->note(std::move(stored).error());
    return {};
  }
  for (const StoredBlocks& former : *stored) {
    auto index = new_index();
    bool whole = index->load_keys(former.index, former.tokens, former.sinks);
    for (const BlockRow& row : former.blocks) whole = whole && index->load_block({row.key, row.range, ""}, row.meaning);
    // Its sinks' tokens are not known here; they are computed again.
    if (whole) formers_.push_back({store_.new_session(), {}, std::move(index)});
  }
  return {};
}

void SessionImpl::save() {
  if (durable_ != nullptr) durable_->save({text_, std::span(blocks_).first(blocks_done()), *index_, store_, id_});
}

void SessionImpl::save_if_due() {
  // A durable point takes tens of milliseconds.
  constexpr double kSeconds = 2.0;
  constexpr std::size_t kBlocks = 32;
  if (durable_ != nullptr && (durable_->waited() >= kSeconds || blocks_done() - durable_->blocks() >= kBlocks)) save();
}

std::optional<Error> SessionImpl::take_storage_error() {
  if (std::optional<Error> below = store_.take_tier_error(); below && durable_ != nullptr)
    durable_->note(std::move(*below));
  return durable_ == nullptr ? std::nullopt : durable_->take_error();
}

void SessionImpl::note_use(const Answer& answer) {
  if (durable_ == nullptr) return;
  std::vector<StreamPos> fetched;
  for (const Passage& passage : answer.retrieved) {
    const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                    [&](const Block& b) { return b.range.contains(passage.range.begin); });
    if (block != blocks_.end()) fetched.push_back(block->range.begin);
  }
  durable_->touch(turn_, fetched);
}

Status SessionImpl::charge() {
  std::int64_t bytes = index_->bytes() + text_.bytes();
  for (const std::optional<KeptRange>& kept : kept_)
    if (kept) bytes += static_cast<std::int64_t>(kept->payload.data.size());
  return store_.charge(id_, bytes);
}

BlockKey SessionImpl::kept_key(KeptSlot slot, StreamRange range, Place at) const {
  Hasher hasher;
  hasher.text("kept").digest(identity().digest());
  const auto add = [&](StreamRange tokens) {
    hasher.values(std::span(text_.tokens())
                      .subspan(static_cast<std::size_t>(tokens.begin.get()), static_cast<std::size_t>(tokens.size())));
  };
  // Its KV depends on all that stands before it in sequence 0.
  if (slot != KeptSlot::sinks) {
    add({StreamPos(0), sinks_end()});
    for (const ResidentRange& before : resident_.ranges) {
      add(before.range);
      hasher.number(static_cast<std::uint64_t>(before.at.get()));
    }
  }
  add(range);
  return hasher.number(static_cast<std::uint64_t>(at.get())).finish();
}

void SessionImpl::keep(KeptSlot slot, StreamRange range, Place at) {
  if (range.empty()) return;
  Result<KvPayload> payload = engine_.export_range(kMain, {at, at + static_cast<std::int32_t>(range.size())});
  // What a windowed layer has lost already is computed again.
  if (!payload) return;
  const BlockKey key = kept_key(slot, range, at);
  if (durable_ != nullptr) durable_->keep(slot, key, *payload);
  std::optional<KeptRange>& kept = kept_[static_cast<std::size_t>(slot)];
  kept = KeptRange{key, std::move(*payload)};
  if (!charge()) kept.reset();
}

Status SessionImpl::place_kept(KeptSlot slot, StreamRange range, Place at) {
  if (range.empty()) return {};
  std::optional<KeptRange>& kept = kept_[static_cast<std::size_t>(slot)];
  const BlockKey key = kept_key(slot, range, at);
  if (!kept || kept->key != key) {
    kept.reset();
    if (durable_ != nullptr && durable_->keeps(key)) {
      if (std::optional<KvPayload> read = durable_->kept(slot, key)) kept = KeptRange{key, std::move(*read)};
    }
  }
  if (kept && engine_.admit(kMain, kept->payload, at)) {
    // Read back where there is no room for it: used once.
    if (!charge()) kept.reset();
    return {};
  }
  MODELD_TRY_VOID(compute_range(range, at, false));
  since_.recomputed += range.size();
  keep(slot, range, at);
  return {};
}

}  // namespace modeld
