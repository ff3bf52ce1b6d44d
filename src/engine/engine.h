// The engine contract: all that modeld asks of an inference engine.
//
// What:       one loaded model and at most one KV context. Cells of the context hold the K and V of tokens; a token has
// a
//             place (its RoPE position) in each sequence that it belongs to. What is resident in a sequence, at places
//             before a new token's, is exactly what that token attends: evicting and admitting ranges *is* sparse
//             attention.
// Ownership:  the engine owns weights and cells. Payloads belong to the caller. Logits and observations are valid until
// the
//             next call that computes.
// Thread:     one thread at a time. cancel() alone may be called from any thread, and from a signal handler.
// Failure:    misuse is an error value and changes nothing. A failure in the middle of a computation poisons the
// context:
//             every later call answers engine_poisoned until open_context() builds a new one.
// Invariant:  an engine knows nothing of sessions, cache classes, questions or HTTP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "model/geometry.h"
#include "model/kv_type.h"
#include "stream/manifest.h"
#include "stream/tokens.h"

namespace modeld {

/// A sequence of the context, 0 … ContextSpec::sequences-1.
using SeqId = std::int32_t;

struct ContextSpec {
  /// Cells: the hot budget in tokens, all sequences together. A cell shared by several sequences counts once.
  std::int32_t cells = 0;
  /// Sequences that the caller uses.
  std::int32_t sequences = 1;
  KvType kv_type = KvType::f16;
  /// Tokens computed in one pass; larger batches are split at multiples of it. 0: the engine's choice.
  std::int32_t batch = 512;
  /// 0: the engine's choice for this machine.
  std::int32_t threads = 0;
};

struct BatchToken {
  Token token = 0;
  Place place;
  SeqId seq = 0;
  /// Whether the logits after this token are wanted.
  bool logits = false;
};

/// K and V of consecutive places of one sequence, in the engine's own form.
struct KvPayload {
  /// Where the tokens stood when they were computed: pristine, never shifted.
  PlaceRange places;
  KvType kv_type = KvType::f16;
  /// The format of the numbers in `data`, where pack() has changed it from kv_type.
  std::optional<KvType> packed;
  std::vector<std::byte> data;
};

/// Which queries and keys to record while computing.
struct ObserveSpec {
  std::vector<HeadRef> queries;
  std::vector<KvHeadRef> keys;
  /// true: before RoPE (un-rotated, after biases and norms); false: as attention uses them.
  bool before_rope = true;
};

/// Recorded queries and keys of the last compute() call; row-major f32, one row a token in batch order.
struct Observation {
  std::int32_t tokens = 0;
  /// queries[i] is head spec.queries[i]: tokens × key_dim.
  std::vector<std::vector<float>> queries;
  /// keys[i] is KV head spec.keys[i]: tokens × key_dim.
  std::vector<std::vector<float>> keys;
};

struct EngineMemory {
  std::int64_t weights = 0;
  std::int64_t kv = 0;
  std::int64_t compute = 0;
};

/// One message of a chat, for the model's own template.
struct ChatMessage {
  std::string role;
  std::string content;
};

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  // ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────

  virtual const ModelGeometry& geometry() const = 0;
  /// All identity fields that the model and the engine decide; kv_type as the open context has it ("" without one).
  virtual Identity identity() const = 0;

  /// Text to tokens. `add_bos`: as the model's own policy says, at the start of a stream. `parse_special`: whether
  /// control tokens written in the text become such tokens: true for template text only, never for what a user wrote.
  virtual Result<std::vector<Token>> tokenize(std::string_view text, bool add_bos, bool parse_special) const = 0;
  /// Text of one token; may hold partial UTF-8. Control tokens give "" unless `special`.
  virtual std::string piece(Token token, bool special = false) const = 0;
  /// End of generation: EOS, EOT and their like.
  virtual bool is_end(Token token) const = 0;
  /// The messages as the model's template writes them, with the prompt for an answer if `add_generation_prompt`.
  /// Errors: unsupported_operation for a model without a template.
  virtual Result<std::string> render_chat(std::span<const ChatMessage> messages, bool add_generation_prompt) const = 0;

  // ── the context ──────────────────────────────────────────────────────────────────────────────────────────────────

  /// Opens a context, replacing an open one (its cells are lost; poison is cleared).
  /// Errors: device_budget_exceeded (with the numbers), unsupported_kv_type, bad_argument.
  virtual Status open_context(const ContextSpec& spec) = 0;
  virtual void close_context() = 0;
  /// The spec of the open context with every 0 resolved; cells == 0 without one.
  virtual const ContextSpec& context() const = 0;

  /// Computes K, V and, where wanted, logits of the batch. In each sequence the new places must follow its highest
  /// place without a gap (an empty sequence may start anywhere). Errors: engine_misuse, engine_no_cells, cancelled
  /// (nothing of the batch stays resident), engine_failed (poisons).
  virtual Status compute(std::span<const BatchToken> batch) = 0;
  /// Logits after batch[index] of the last compute(), vocabulary-many; empty if they were not asked for.
  virtual std::span<const float> logits(std::size_t index) const = 0;

  /// From the next compute() on, records what `spec` names; an empty spec ends it.
  /// Errors: engine_misuse for heads that the model does not have; unsupported_operation.
  virtual Status observe(const ObserveSpec& spec) = 0;
  virtual const Observation& observation() const = 0;

  /// Places that `seq` holds now: its lowest and one past its highest; empty range if none. There may be holes.
  virtual PlaceRange extent(SeqId seq) const = 0;

  /// Copies the KV of a contiguous run of places out. The cells stay. Errors: engine_misuse if a place is not resident
  /// or was moved since it was computed (a cold copy must be pristine); unsupported_operation where a windowed layer
  /// has lost it.
  virtual Result<KvPayload> export_range(SeqId seq, PlaceRange places) = 0;
  /// An f16 payload with its numbers in a smaller format, for keeping: admit() takes it like the one it was made of.
  /// Lossy. Needs no context. Errors: unsupported_kv_type for a payload that is not f16 or packed already, or where the
  /// model's rows are no whole blocks of the format; payload_invalid.
  virtual Result<KvPayload> pack(const KvPayload& payload, KvType type) const = 0;
  /// Drops places from one sequence; cells that no sequence holds become free. Places not resident are ignored, an
  /// empty range drops nothing. Errors: engine_misuse for a negative or reversed range.
  virtual Status evict(SeqId seq, PlaceRange places) = 0;
  /// Puts a payload, packed or not, into `seq` with its first token at `at`, rotating once from the payload's own
  /// places. The target places must be free in `seq`. Errors: engine_misuse, engine_no_cells, payload_invalid; nothing
  /// is changed then.
  virtual Status admit(SeqId seq, const KvPayload& payload, Place at) = 0;
  /// Moves the resident places of a run by `delta` (RoPE rotates with it). The target must be free, shared cells
  /// refuse. Moved cells cannot be exported again.
  virtual Status rebase(SeqId seq, PlaceRange places, std::int32_t delta) = 0;
  /// Makes a run of `from` resident in `to` as well, at the same places, without a copy. Target places must be free.
  virtual Status share(SeqId from, SeqId to, PlaceRange places) = 0;

  // ── whose the context is ─────────────────────────────────────────────────────────────────────────────────────────

  /// A caller's own number, for callers that take turns on one engine: one that finds another's number here knows that
  /// nothing it had left in the context is there any more. 0: nobody's yet. The engine does not look at it.
  [[nodiscard]] std::uint64_t holder() const { return holder_; }
  void set_holder(std::uint64_t caller) { holder_ = caller; }

  virtual EngineMemory memory() const = 0;
  /// Cells in use now, counted.
  virtual std::int32_t cells_used() const = 0;
  /// Stops a running compute() within a second. Stays in force until clear_cancel().
  virtual void cancel() noexcept = 0;
  virtual void clear_cancel() noexcept = 0;
  /// Empty if the books are right: cells, sequences, extents. For tests and idle checks.
  virtual std::string check_integrity() const = 0;

 private:
  std::uint64_t holder_ = 0;
};

}  // namespace modeld
