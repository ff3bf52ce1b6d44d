// Moving KV: export, evict, admit, rebase, share. Each call checks the ledger, then acts, then enters what it did.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/llama/backend.h"
#include "engine/llama/llama_engine.h"

namespace modeld {
namespace {

constexpr llama_pos kToEnd = -1;

}  // namespace

PlaceRange LlamaEngine::extent(SeqId seq) const { return open_ != nullptr ? open_->ledger.extent(seq) : PlaceRange{}; }

std::int32_t LlamaEngine::cells_used() const { return open_ != nullptr ? open_->ledger.cells_used() : 0; }

void LlamaEngine::drop(SeqId seq, PlaceRange places) {
  llama_memory_seq_rm(open_->memory(), seq, places.begin.get(), places.end.get());
  if (open_->guards) llama_memory_seq_rm(open_->memory(), open_->guard(seq), places.begin.get(), places.end.get());
}

Result<KvPayload> LlamaEngine::export_range(SeqId seq, PlaceRange places) {
  MODELD_TRY_VOID(require_context());
  MODELD_TRY_VOID(open_->ledger.check_export(seq, places));
  const SeqId scratch = open_->scratch();
  const llama_memory_t memory = open_->memory();
  const std::int32_t limit = open_->layout.piece_limit();
  PayloadWriter writer(open_->layout, places);
  for (Place first = places.begin; first < places.end;) {
    const std::int32_t left = places.end - first;
    const std::int32_t tokens = limit > 0 ? std::min(limit, left) : left;
    llama_memory_seq_cp(memory, seq, scratch, first.get(), first.get() + tokens);
    const std::size_t expected = open_->layout.bytes(tokens, tokens);
    const std::size_t bytes = llama_state_seq_get_size(open_->llama.get(), scratch);
    std::size_t written = 0;
    if (bytes == expected) {
      const auto room = writer.add(first, tokens, bytes);
      auto* data = reinterpret_cast<std::uint8_t*>(room.data());
      written = llama_state_seq_get_data(open_->llama.get(), data, room.size(), scratch);
    }
    llama_memory_seq_rm(memory, scratch, kToEnd, kToEnd);
    if (bytes != expected)
      return fail(
          ErrorCode::unsupported_operation,
          fmt::format("llama.cpp holds {} bytes for {} tokens where {} are needed: layers of this model keep less "
                      "than modeld must have of them.",
                      bytes, tokens, expected),
          {{"bytes", static_cast<std::int64_t>(bytes)}, {"needed_bytes", static_cast<std::int64_t>(expected)}});
    if (written != bytes)
      return fail(ErrorCode::engine_failed, fmt::format("llama.cpp could not copy KV out ({}).", last_llama_error()));
    first += tokens;
  }
  return writer.finish();
}

Result<KvPayload> LlamaEngine::pack(const KvPayload& payload, KvType type) const {
  constexpr std::int64_t kBlock = 32;
  const bool whole = std::ranges::all_of(geometry().layers, [](const LayerGeometry& layer) {
    return std::int64_t{layer.kv_heads} * layer.key_dim % kBlock == 0 &&
           std::int64_t{layer.kv_heads} * layer.value_dim % kBlock == 0;
  });
  if (payload.kv_type != KvType::f16 || payload.packed || type == KvType::f16 || !whole)
    return fail(ErrorCode::unsupported_kv_type,
                "Only f16 KV can be packed, once, into a smaller format, and only where the model's rows are whole "
                "blocks of 32 numbers.");
  return convert_payload(BlobLayout(geometry(), KvType::f16), BlobLayout(geometry(), KvType::f16, type), payload);
}

Status LlamaEngine::evict(SeqId seq, PlaceRange places) {
  MODELD_TRY_VOID(require_context());
  MODELD_TRY_VOID(open_->ledger.check_sequence(seq));
  if (places.begin == places.end && places.begin.get() >= 0) return {};
  MODELD_TRY_VOID(open_->ledger.check_range(places));
  drop(seq, places);
  open_->ledger.enter_evict(seq, places);
  return {};
}

Status LlamaEngine::admit_piece(SeqId seq, const PayloadPiece& piece, std::int32_t delta) {
  const SeqId scratch = open_->scratch();
  const llama_memory_t memory = open_->memory();
  const auto* data = reinterpret_cast<const std::uint8_t*>(piece.blob.data());
  const std::size_t read = llama_state_seq_set_data(open_->llama.get(), data, piece.blob.size(), scratch);
  if (read != piece.blob.size()) {
    llama_memory_seq_rm(memory, scratch, kToEnd, kToEnd);
    return fail(ErrorCode::engine_no_cells,
                fmt::format("llama.cpp could not take {} tokens in ({}). Evict something first.", piece.tokens,
                            last_llama_error()),
                {{"needed_cells", piece.tokens}});
  }
  if (delta != 0) llama_memory_seq_add(memory, scratch, kToEnd, kToEnd, delta);
  llama_memory_seq_cp(memory, scratch, seq, kToEnd, kToEnd);
  if (open_->guards) llama_memory_seq_cp(memory, scratch, open_->guard(seq), kToEnd, kToEnd);
  llama_memory_seq_rm(memory, scratch, kToEnd, kToEnd);
  return {};
}

Status LlamaEngine::admit(SeqId seq, const KvPayload& payload, Place at) {
  MODELD_TRY_VOID(require_context());
  MODELD_TRY_VOID(open_->ledger.check_sequence(seq));
  KvPayload unpacked;
  if (payload.packed && payload.kv_type == KvType::f16) {
    MODELD_TRY(unpacked, convert_payload(BlobLayout(geometry(), KvType::f16, payload.packed),
                                         BlobLayout(geometry(), KvType::f16), payload));
  }
  MODELD_TRY(const auto pieces, read_payload(open_->layout, unpacked.data.empty() ? payload : unpacked));
  const std::int32_t tokens = payload.places.size();
  MODELD_TRY_VOID(open_->ledger.check_admit(seq, at, tokens));
  const std::int32_t delta = at - payload.places.begin;
  if (delta != 0 && !facts_.can_move)
    return fail(ErrorCode::unsupported_operation,
                "llama.cpp cannot move the keys of this model: a block can return to its own place only.",
                {{"own_place", payload.places.begin.get()}, {"place", at.get()}});
  for (const PayloadPiece& piece : pieces)
    if (auto taken = admit_piece(seq, piece, delta); !taken) {
      drop(seq, {at, at + tokens});
      return taken;
    }
  open_->ledger.enter_admit(seq, at, tokens, delta != 0);
  return {};
}

Status LlamaEngine::rebase(SeqId seq, PlaceRange places, std::int32_t delta) {
  MODELD_TRY_VOID(require_context());
  MODELD_TRY_VOID(open_->ledger.check_rebase(seq, places, delta));
  if (delta == 0) return {};
  if (!facts_.can_move) return fail(ErrorCode::unsupported_operation, "llama.cpp cannot move the keys of this model.");
  // A guard holds the very same cells: moving them in one sequence moves them in both.
  llama_memory_seq_add(open_->memory(), seq, places.begin.get(), places.end.get(), delta);
  open_->ledger.enter_rebase(seq, places, delta);
  return {};
}

Status LlamaEngine::share(SeqId from, SeqId to, PlaceRange places) {
  MODELD_TRY_VOID(require_context());
  MODELD_TRY_VOID(open_->ledger.check_share(from, to, places));
  llama_memory_seq_cp(open_->memory(), from, to, places.begin.get(), places.end.get());
  if (open_->guards) llama_memory_seq_cp(open_->memory(), from, open_->guard(to), places.begin.get(), places.end.get());
  open_->ledger.enter_share(from, to, places);
  return {};
}

std::string LlamaEngine::check_integrity() const {
  if (open_ == nullptr || open_->poisoned) return {};
  const Ledger& ledger = open_->ledger;
  if (std::string fault = ledger.check_integrity(); !fault.empty()) return fault;
  const llama_memory_t memory = open_->memory();
  if (llama_memory_seq_pos_max(memory, open_->scratch()) >= 0) return "the scratch sequence is not empty";
  for (SeqId seq = 0; seq < ledger.sequences(); ++seq) {
    const PlaceRange extent = ledger.extent(seq);
    const bool empty = extent.empty();
    for (const SeqId actual : {seq, open_->guards ? open_->guard(seq) : seq}) {
      const llama_pos lowest = llama_memory_seq_pos_min(memory, actual);
      const llama_pos highest = llama_memory_seq_pos_max(memory, actual);
      if (empty ? highest >= 0 : lowest != extent.begin.get() || highest != extent.end.get() - 1)
        return fmt::format("sequence {} reaches from {} to {} in llama.cpp, the book says {} to {}", actual, lowest,
                           highest, extent.begin.get(), extent.end.get() - 1);
      const std::int32_t held = ledger.held(seq);
      const std::size_t expected = open_->layout.bytes(held, ledger.held_within(seq, facts_.window));
      const std::size_t bytes = llama_state_seq_get_size(open_->llama.get(), actual);
      if (bytes != expected)
        return fmt::format("sequence {} holds {} bytes in llama.cpp, the book's {} tokens make {}", actual, bytes, held,
                           expected);
    }
  }
  return {};
}

}  // namespace modeld
