// The stream is replaced by another: what comes again of it is not computed again.
//
// Blocks find themselves again by their content (stream/block.h); an isolated block's KV is a function of sinks, run-up
// and its own tokens, so that what is taken over is what would be computed. A streamed block's key holds those of all
// blocks before it: there only what stands before the first change comes again.
#include <algorithm>
#include <utility>

#include "session/session_impl.h"

namespace modeld {
namespace {

Digest128 hash_of(const StreamText& text, StreamPos end) {
  return hash_tokens(std::span(text.tokens()).first(static_cast<std::size_t>(end.get())));
}

}  // namespace

Status SessionImpl::replace(std::span<const TextPart> parts, const CancelFlag* cancel) {
  MODELD_TRY(StreamText fresh, text_.replaced(engine_, frame_, parts, cancel));
  // In exact mode the common beginning stays where it is.
  const auto same =
      std::mismatch(text_.tokens().begin(), text_.tokens().end(), fresh.tokens().begin(), fresh.tokens().end());
  const StreamPos common(same.first - text_.tokens().begin());
  if (exact_ && common < exact_end_) {
    if (engine_.holder() == holder_) {
      MODELD_TRY_VOID(trim_main(Place(static_cast<std::int32_t>(common.get()))));
      exact_end_ = common;
    } else {
      drop_exact();
    }
  }
  if (sinks_end() > StreamPos(0)) {
    formers_.push_back({std::exchange(id_, store_.new_session()), hash_of(text_, sinks_end()), std::move(index_)});
    index_ = new_index();
  }
  text_ = std::move(fresh);
  blocks_.clear();
  resident_.valid = false;
  if (durable_ != nullptr) durable_->replace();
  save();
  return {};
}

bool SessionImpl::take_over_sinks(StreamPos end) {
  const Digest128 sinks = hash_of(text_, end);
  const auto former = std::find_if(formers_.begin(), formers_.end(), [&](const FormerStream& f) {
    return f.sinks == sinks && f.index->sinks_end() == end;
  });
  if (former == formers_.end()) return false;
  index_->append_sinks(*former->index);
  return true;
}

void SessionImpl::forget_formers() {
  if (formers_.empty() || blocks_done() < blocks_.size()) return;
  for (const FormerStream& former : formers_) store_.erase(former.id);
  formers_.clear();
  if (durable_ != nullptr) durable_->forget_formers();
}

}  // namespace modeld
