// The context: opening, computing, logits, observation, memory.
#include <fmt/format.h>
#include <ggml.h>

#include <algorithm>
#include <limits>

#include "engine/llama/backend.h"
#include "engine/llama/devices.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/memory.h"

namespace modeld {
namespace {

constexpr std::int32_t kDefaultBatch = 512;
constexpr std::int32_t kCellsRounding = 256;  // llama.cpp rounds n_ctx up to it
constexpr std::int64_t kLogitBytes = std::int64_t{256} << 20U;

ggml_type ggml_type_of(KvType type) {
  switch (type) {
    case KvType::f16:
      return GGML_TYPE_F16;
    case KvType::q8_0:
      return GGML_TYPE_Q8_0;
    case KvType::q4_0:
      return GGML_TYPE_Q4_0;
  }
  return GGML_TYPE_F16;
}

std::int32_t rounded_cells(std::int32_t cells) {
  return (cells + kCellsRounding - 1) / kCellsRounding * kCellsRounding;
}

}  // namespace

Result<ContextSpec> LlamaEngine::resolve(const ContextSpec& spec) const {
  ContextSpec resolved = spec;
  if (resolved.batch == 0) resolved.batch = kDefaultBatch;
  if (resolved.threads == 0) resolved.threads = thread_counts(0).prefill;
  const bool guards = facts_.window > 0;
  const auto most = static_cast<std::int32_t>((llama_max_parallel_sequences() - 1) / (guards ? 2 : 1));
  constexpr std::int32_t kMostCells = std::numeric_limits<std::int32_t>::max() - kCellsRounding;
  const auto bad = [](std::string_view what, std::int64_t given, std::int64_t least, std::int64_t limit) {
    return fail(ErrorCode::bad_argument,
                fmt::format("A context cannot have {} {}: between {} and {} are possible.", given, what, least, limit),
                {{"given", given}, {"least", least}, {"most", limit}});
  };
  if (spec.cells < 1 || spec.cells > kMostCells) return bad("cells", spec.cells, 1, kMostCells);
  if (spec.sequences < 1 || spec.sequences > most) return bad("sequences", spec.sequences, 1, most);
  if (resolved.batch < 1 || resolved.batch > 65536) return bad("tokens a pass", spec.batch, 1, 65536);
  if (resolved.threads < 1 || resolved.threads > GGML_MAX_N_THREADS)
    return bad("threads", spec.threads, 1, GGML_MAX_N_THREADS);
  if (!facts_.geometry.supports(spec.kv_type))
    return fail(ErrorCode::unsupported_kv_type,
                fmt::format("The heads of this model cannot be stored as {}: their size is no multiple of 32. Use f16.",
                            to_text(spec.kv_type)));
  return resolved;
}

Status LlamaEngine::check_device_memory(const ContextSpec& spec) const {
  MODELD_TRY(const auto devices, llama_devices());
  std::int64_t accelerators = 0;
  for (const DeviceMemory& device : devices)
    if (device.accelerator) accelerators += device.free_bytes;
  const std::int64_t free = accelerators > 0 ? accelerators : devices.front().free_bytes;
  const std::int64_t per_token = facts_.geometry.kv_bytes_per_token(spec.kv_type);
  const std::int64_t needed = per_token * rounded_cells(spec.cells);
  if (needed <= free) return {};
  return fail(ErrorCode::device_budget_exceeded,
              fmt::format("{} cells of {} need {} bytes for keys and values; {} are free. At most {} cells fit.",
                          spec.cells, to_text(spec.kv_type), needed, free, free / per_token),
              {{"needed_bytes", needed}, {"free_bytes", free}, {"fitting_cells", free / per_token}});
}

Status LlamaEngine::open_context(const ContextSpec& spec) {
  MODELD_TRY(const auto resolved, resolve(spec));
  close_context();
  MODELD_TRY_VOID(check_device_memory(resolved));
  auto open = std::make_unique<Open>(resolved, facts_.geometry, facts_.window > 0);
  const std::int64_t row_bytes = std::int64_t{facts_.geometry.vocabulary} * std::int64_t{sizeof(float)};
  const auto sequences = open->scratch() + 1;
  // llama.cpp reserves room for these rows in its compute buffers, and aborts beyond them.
  open->rows_limit = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(kLogitBytes / row_bytes, sequences, std::max(resolved.batch, sequences)));

  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(rounded_cells(resolved.cells));
  params.n_batch = static_cast<std::uint32_t>(resolved.batch);
  params.n_ubatch = params.n_batch;
  params.n_seq_max = static_cast<std::uint32_t>(sequences);
  params.n_outputs_max = static_cast<std::uint32_t>(open->rows_limit);
  const ThreadCounts threads = thread_counts(spec.threads);
  params.n_threads = threads.decode;
  params.n_threads_batch = threads.prefill;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = ggml_type_of(resolved.kv_type);
  params.type_v = params.type_k;
  params.kv_unified = true;
  params.swa_full = open->guards;
  params.cb_eval = &LlamaEngine::on_node;
  params.cb_eval_user_data = this;
  params.abort_callback = &LlamaEngine::abort_wanted;
  params.abort_callback_data = this;
  try {
    open->llama.reset(llama_init_from_model(model_.get(), params));
  } catch (const std::exception& e) {
    return fail(ErrorCode::device_budget_exceeded, fmt::format("llama.cpp could not open a context ({}).", e.what()));
  }
  if (open->llama == nullptr)
    return fail(ErrorCode::device_budget_exceeded,
                fmt::format("llama.cpp could not open a context of {} cells ({}).", resolved.cells, last_llama_error()),
                {{"cells", resolved.cells}});
  facts_.can_move = facts_.can_move && llama_memory_can_shift(open->memory());
  open_ = std::move(open);
  return {};
}

void LlamaEngine::close_context() {
  open_.reset();
  observer_.clear();
  row_of_.clear();
  rows_.clear();
}

const ContextSpec& LlamaEngine::context() const {
  static const ContextSpec kNone{.cells = 0, .sequences = 0};
  if (open_ == nullptr) return kNone;
  return open_->spec;
}

Status LlamaEngine::require_context() const {
  if (open_ == nullptr) return fail(ErrorCode::engine_misuse, "No context is open. Open one first.");
  if (open_->poisoned)
    return fail(ErrorCode::engine_poisoned, "The engine failed earlier; its context must be opened again.");
  return {};
}

Status LlamaEngine::check_tokens(std::span<const BatchToken> batch) const {
  for (const BatchToken& token : batch)
    if (token.token < 0 || token.token >= facts_.geometry.vocabulary)
      return fail(ErrorCode::engine_misuse, fmt::format("Token {} is not in the vocabulary.", token.token),
                  {{"token", token.token}, {"vocabulary_tokens", facts_.geometry.vocabulary}});
  return {};
}

Status LlamaEngine::poison(std::string_view what) {
  open_->poisoned = true;
  return fail(ErrorCode::engine_failed, fmt::format("{} ({}). Open the context again.", what, last_llama_error()));
}

bool LlamaEngine::abort_wanted(void* self) {
  const auto* engine = static_cast<const LlamaEngine*>(self);
  return engine->may_abort_ && engine->cancel_.requested();
}

bool LlamaEngine::on_node(ggml_tensor* node, bool ask, void* self) {
  auto* engine = static_cast<LlamaEngine*>(self);
  if (!ask) {
    engine->observer_.take(node);
    return true;
  }
  // Moving keys is done in place, layer by layer: cut in the middle, some would be rotated twice. That graph has
  // neither an embedding look-up nor attention, every pass over tokens has both.
  if (node->op == GGML_OP_GET_ROWS || node->op == GGML_OP_FLASH_ATTN_EXT) engine->may_abort_ = true;
  return engine->observer_.wants(node);
}

llama_batch LlamaEngine::Arrays::fill(std::span<const BatchToken> piece) {
  const std::size_t n = piece.size();
  tokens.resize(n);
  places.resize(n);
  counts.assign(n, 1);
  sequences.resize(n);
  sequence_of.resize(n);
  wanted.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    tokens[i] = piece[i].token;
    places[i] = piece[i].place.get();
    sequences[i] = piece[i].seq;
    sequence_of[i] = &sequences[i];
    wanted[i] = piece[i].logits ? 1 : 0;
  }
  return {.n_tokens = static_cast<std::int32_t>(n),
          .token = tokens.data(),
          .embd = nullptr,
          .pos = places.data(),
          .n_seq_id = counts.data(),
          .seq_id = sequence_of.data(),
          .logits = wanted.data()};
}

std::size_t LlamaEngine::piece_length(std::span<const BatchToken> rest) const {
  const std::size_t most = std::min(rest.size(), static_cast<std::size_t>(open_->spec.batch));
  std::int32_t rows = 0;
  for (std::size_t i = 0; i < most; ++i) {
    rows += rest[i].logits ? 1 : 0;
    if (rows > open_->rows_limit) return i;
  }
  return most;
}

Status LlamaEngine::compute_piece(std::span<const BatchToken> piece) {
  observer_.begin_piece(static_cast<std::int32_t>(piece.size()));
  const std::uint64_t errors = llama_errors_logged();
  std::int32_t rc = 0;
  may_abort_ = false;
  try {
    rc = llama_decode(open_->llama.get(), arrays_.fill(piece));
    llama_synchronize(open_->llama.get());
  } catch (const std::exception& e) {
    return poison(fmt::format("llama.cpp threw an exception while computing: {}", e.what()));
  }
  if (rc == 2) return fail(ErrorCode::cancelled, "Cancelled.");
  if (rc == 1)
    return fail(ErrorCode::engine_no_cells,
                fmt::format("llama.cpp found no cells for {} tokens. Evict something first.", piece.size()),
                {{"needed_cells", static_cast<std::int64_t>(piece.size())}});
  if (rc != 0) return poison(fmt::format("llama.cpp failed with status {} while computing", rc));
  // A failed move of keys is only logged.
  if (llama_errors_logged() != errors) return poison("llama.cpp reported an error while computing");
  return observer_.end_piece();
}

void LlamaEngine::guard_piece(std::span<const BatchToken> piece) {
  if (!open_->guards) return;
  std::vector<PlaceRange> ranges(static_cast<std::size_t>(open_->spec.sequences));
  for (const BatchToken& token : piece) {
    PlaceRange& range = ranges[static_cast<std::size_t>(token.seq)];
    if (range.empty()) range.begin = token.place;
    range.end = token.place + 1;
  }
  for (SeqId seq = 0; seq < open_->spec.sequences; ++seq)
    if (const PlaceRange& range = ranges[static_cast<std::size_t>(seq)]; !range.empty())
      llama_memory_seq_cp(open_->memory(), seq, open_->guard(seq), range.begin.get(), range.end.get());
}

void LlamaEngine::roll_back(std::span<const BatchToken> batch) {
  std::vector<bool> done(static_cast<std::size_t>(open_->spec.sequences), false);
  for (const BatchToken& token : batch) {
    if (done[static_cast<std::size_t>(token.seq)]) continue;
    done[static_cast<std::size_t>(token.seq)] = true;
    drop(token.seq, {token.place, Place(std::numeric_limits<std::int32_t>::max())});
  }
  row_of_.clear();
  observer_.clear();
}

void LlamaEngine::keep_rows(std::size_t first, std::size_t length) {
  const auto width = static_cast<std::size_t>(facts_.geometry.vocabulary);
  for (std::size_t i = 0; i < length; ++i) {
    std::int32_t& row = row_of_[first + i];
    if (row < 0) continue;
    if (one_pass_) {
      row = static_cast<std::int32_t>(i);
      continue;
    }
    row = static_cast<std::int32_t>(rows_.size() / width);
    const float* from = llama_get_logits_ith(open_->llama.get(), static_cast<std::int32_t>(i));
    rows_.insert(rows_.end(), from, from + width);
  }
}

Status LlamaEngine::compute(std::span<const BatchToken> batch) {
  MODELD_TRY_VOID(require_context());
  MODELD_TRY_VOID(open_->ledger.check_compute(batch));
  MODELD_TRY_VOID(check_tokens(batch));
  if (cancel_.requested()) return fail(ErrorCode::cancelled, "Cancelled.");
  row_of_.assign(batch.size(), -1);
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (batch[i].logits) row_of_[i] = 0;
  rows_.clear();
  observer_.begin(static_cast<std::int32_t>(batch.size()));
  one_pass_ = piece_length(batch) == batch.size();
  for (std::size_t first = 0; first < batch.size();) {
    const auto piece = batch.subspan(first, piece_length(batch.subspan(first)));
    auto status = compute_piece(piece);
    if (status && cancel_.requested() && first + piece.size() < batch.size())
      status = fail(ErrorCode::cancelled, "Cancelled.");
    if (!status) {
      if (!open_->poisoned) roll_back(batch);
      return status;
    }
    keep_rows(first, piece.size());
    guard_piece(piece);
    first += piece.size();
  }
  open_->ledger.enter_compute(batch);
  return {};
}

std::span<const float> LlamaEngine::logits(std::size_t index) const {
  if (open_ == nullptr || open_->poisoned || index >= row_of_.size() || row_of_[index] < 0) return {};
  const auto width = static_cast<std::size_t>(facts_.geometry.vocabulary);
  if (!one_pass_) return std::span(rows_).subspan(static_cast<std::size_t>(row_of_[index]) * width, width);
  const float* row = llama_get_logits_ith(open_->llama.get(), row_of_[index]);
  return row != nullptr ? std::span(row, width) : std::span<const float>{};
}

Status LlamaEngine::observe(const ObserveSpec& spec) { return observer_.set(spec, facts_.geometry); }

EngineMemory LlamaEngine::memory() const {
  if (open_ != nullptr) return memory_of(open_->llama.get());
  return {.weights = static_cast<std::int64_t>(llama_model_size(model_.get())), .kv = 0, .compute = 0};
}

}  // namespace modeld
