// Moving KV between a context and its payloads, and within a context. Every call checks all before it changes anything.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/scripted/payload.h"
#include "engine/scripted/scripted_engine.h"
#include "model/kv_rows.h"

namespace modeld {
namespace {

tl::unexpected<Error> misuse(std::string message, PlaceRange places) {
  return fail(ErrorCode::engine_misuse, std::move(message), {{"begin", places.begin.get()}, {"end", places.end.get()}});
}

/// Whether a range shifted by `delta` still consists of places.
bool shiftable(PlaceRange places, std::int64_t delta) {
  return places.begin.get() + delta >= 0 && places.end.get() + delta <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

PlaceRange ScriptedEngine::extent(SeqId seq) const {
  if (!cells_ || seq < 0 || seq >= spec_.sequences) return {};
  return cells_->extent(seq);
}

Result<KvPayload> ScriptedEngine::export_range(SeqId seq, PlaceRange places) {
  MODELD_TRY_VOID(check_range(seq, places));
  if (places.empty()) return misuse("An empty range has no KV.", places);
  const auto run = cells_->entries(seq, places);
  if (std::cmp_not_equal(run.size(), places.size())) return misuse("Not every place of the range is resident.", places);
  std::vector<std::byte> rows;
  rows.reserve(run.size() * cells_->token_bytes());
  for (const auto& [place, cell] : run) {
    if (cells_->moved(cell)) {
      return misuse("A token of the range was moved since it was computed. Compute it again, or use its older copy.",
                    places);
    }
    const auto bytes = cells_->stored(cell);
    rows.insert(rows.end(), bytes.begin(), bytes.end());
  }
  return seal_payload(places, spec_.kv_type, std::nullopt, model_mark_, rows);
}

Result<KvPayload> ScriptedEngine::pack(const KvPayload& payload, KvType type) const {
  if (payload.kv_type != KvType::f16 || payload.packed || type == KvType::f16)
    return fail(ErrorCode::unsupported_kv_type, "Only f16 KV can be packed, once, into a smaller format.");
  MODELD_TRY(const auto rows, open_payload(payload, KvType::f16, model_mark_, ScriptedCells::token_values()));
  const auto values = static_cast<std::int64_t>(rows.size()) / 2;
  std::vector<std::byte> packed(static_cast<std::size_t>(kv_bytes(type, values)));
  convert_rows(KvType::f16, rows, type, packed);
  return seal_payload(payload.places, KvType::f16, type, model_mark_, packed);
}

Status ScriptedEngine::evict(SeqId seq, PlaceRange places) {
  MODELD_TRY_VOID(check_range(seq, places));
  cells_->drop(seq, places);
  return {};
}

Status ScriptedEngine::admit(SeqId seq, const KvPayload& payload, Place at) {
  MODELD_TRY_VOID(check_seq(seq));
  MODELD_TRY(auto rows, open_payload(payload, spec_.kv_type, model_mark_, ScriptedCells::token_values()));
  std::vector<std::byte> unpacked;
  if (payload.packed) {
    unpacked.resize(static_cast<std::size_t>(payload.places.size()) * cells_->token_bytes());
    convert_rows(*payload.packed, rows, spec_.kv_type, unpacked);
    rows = unpacked;
  }
  const std::int64_t delta = std::int64_t{at.get()} - payload.places.begin.get();
  if (at.get() < 0 || !shiftable(payload.places, delta)) return misuse("The target place is out of range.", {at, at});
  const auto tokens = payload.places.size();
  const PlaceRange target{at, at + tokens};
  if (!cells_->entries(seq, target).empty()) return misuse("A target place is taken. Evict it first.", target);
  if (tokens > cells_->free()) {
    return fail(ErrorCode::engine_no_cells, "The payload needs more cells than are free. Evict some first.",
                {{"needed_cells", tokens}, {"free_cells", cells_->free()}});
  }
  const std::size_t bytes = cells_->token_bytes();
  for (std::int32_t i = 0; i < tokens; ++i) {
    const std::int32_t cell = cells_->take(seq, at + i);
    cells_->restore(cell, rows.subspan(static_cast<std::size_t>(i) * bytes, bytes));
    if (delta == 0) continue;
    cells_->turn(cell, weights_, static_cast<std::int32_t>(delta));
    cells_->mark_moved(cell);
  }
  return {};
}

Status ScriptedEngine::rebase(SeqId seq, PlaceRange places, std::int32_t delta) {
  MODELD_TRY_VOID(check_range(seq, places));
  const auto run = cells_->entries(seq, places);
  if (run.empty() || delta == 0) return {};
  const PlaceRange held{run.front().place, run.back().place + 1};
  if (!shiftable(held, delta)) return misuse("The target places are out of range.", places);
  for (const auto& [place, cell] : run) {
    if (cells_->shared(cell)) return misuse("A token of the range is shared with another sequence.", places);
    const Place target = place + delta;
    if (!places.contains(target) && !cells_->entries(seq, {target, target + 1}).empty()) {
      return misuse("A target place is taken. Evict it first.", {target, target + 1});
    }
  }
  for (const auto& [place, cell] : run) {
    cells_->turn(cell, weights_, delta);
    cells_->mark_moved(cell);
  }
  cells_->shift(seq, places, delta);
  return {};
}

Status ScriptedEngine::share(SeqId from, SeqId to, PlaceRange places) {
  MODELD_TRY_VOID(check_range(from, places));
  MODELD_TRY_VOID(check_seq(to));
  for (const auto& [place, cell] : cells_->entries(from, places)) {
    if (!cells_->entries(to, {place, place + 1}).empty()) {
      return misuse("A target place is taken. Evict it first.", {place, place + 1});
    }
  }
  cells_->share(from, to, places);
  return {};
}

EngineMemory ScriptedEngine::memory() const {
  EngineMemory memory;
  memory.weights = weights_.bytes();
  if (!cells_) return memory;
  memory.kv = cells_->stored_bytes();
  memory.compute = cells_->working_bytes();
  return memory;
}

}  // namespace modeld
