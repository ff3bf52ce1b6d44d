// The Engine on llama.cpp. Internal to this folder: others open it through open.h.
//
// Layout of sequences in the llama.cpp context, for n sequences of the caller:
//   0 … n-1      the caller's
//   n … 2n-1     guards, for models with windowed layers only: every cell of sequence i is also in guard n+i. llama.cpp
//                reuses cells that are a window behind *and* belong to one sequence only, so that without a guard
//                windowed layers lose tokens silently
//   the last     scratch: exports and admissions pass through it; empty between calls
// Invariants: the Ledger is checked before llama.cpp is called and entered only after it succeeded. The context has the
//             cells asked for rounded up to 256; the ledger gives out only those asked for.
#pragma once

#include <llama.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/llama/chat.h"
#include "engine/llama/ledger.h"
#include "engine/llama/model_facts.h"
#include "engine/llama/observe.h"
#include "engine/llama/open.h"
#include "engine/llama/payload.h"
#include "engine/llama/threads.h"

namespace modeld {

struct FreeModel {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct FreeContext {
  void operator()(llama_context* context) const { llama_free(context); }
};
using ModelPtr = std::unique_ptr<llama_model, FreeModel>;
using ContextPtr = std::unique_ptr<llama_context, FreeContext>;

/// Loads a file's weights. Errors: model_load_failed with what llama.cpp said.
Result<ModelPtr> load_weights(const std::filesystem::path& gguf, const llama_model_params& params);

class LlamaEngine final : public Engine {
 public:
  /// REQUIRES `model` to be loaded and to agree with `facts`.
  LlamaEngine(ModelPtr model, ModelFacts facts, Identity identity, std::unique_ptr<ChatTemplate> chat);
  ~LlamaEngine() override;

  const ModelGeometry& geometry() const override { return facts_.geometry; }
  Identity identity() const override;
  Result<std::vector<Token>> tokenize(std::string_view text, bool add_bos, bool parse_special) const override;
  std::string piece(Token token, bool special) const override;
  bool is_end(Token token) const override;
  Result<std::string> render_chat(std::span<const ChatMessage> messages, bool add_generation_prompt) const override;

  Status open_context(const ContextSpec& spec) override;
  void close_context() override;
  const ContextSpec& context() const override;
  Status compute(std::span<const BatchToken> batch) override;
  std::span<const float> logits(std::size_t index) const override;
  Status observe(const ObserveSpec& spec) override;
  const Observation& observation() const override { return observer_.observation(); }
  PlaceRange extent(SeqId seq) const override;

  Result<KvPayload> export_range(SeqId seq, PlaceRange places) override;
  Result<KvPayload> pack(const KvPayload& payload, KvType type) const override;
  Status evict(SeqId seq, PlaceRange places) override;
  Status admit(SeqId seq, const KvPayload& payload, Place at) override;
  Status rebase(SeqId seq, PlaceRange places, std::int32_t delta) override;
  Status share(SeqId from, SeqId to, PlaceRange places) override;

  EngineMemory memory() const override;
  std::int32_t cells_used() const override;
  void cancel() noexcept override { cancel_.request(); }
  void clear_cancel() noexcept override { cancel_.clear(); }
  std::string check_integrity() const override;

 private:
  /// Everything that an open context has; made and dropped as one.
  struct Open {
    Open(const ContextSpec& resolved, const ModelGeometry& geometry, bool with_guards)
        : spec(resolved),
          ledger(resolved.sequences, resolved.cells),
          layout(geometry, resolved.kv_type),
          guards(with_guards) {}
    [[nodiscard]] SeqId guard(SeqId seq) const { return spec.sequences + seq; }
    [[nodiscard]] SeqId scratch() const { return spec.sequences * (guards ? 2 : 1); }

    ContextSpec spec;
    Ledger ledger;
    BlobLayout layout;
    bool guards = false;
    bool poisoned = false;
    /// Most logit rows of one pass.
    std::int32_t rows_limit = 0;
    std::unique_ptr<llama_context, FreeContext> llama;
    [[nodiscard]] llama_memory_t memory() const { return llama_get_memory(llama.get()); }
  };
  /// llama_batch's arrays.
  struct Arrays {
    std::vector<llama_token> tokens;
    std::vector<llama_pos> places;
    std::vector<std::int32_t> counts;
    std::vector<llama_seq_id> sequences;
    std::vector<llama_seq_id*> sequence_of;
    std::vector<std::int8_t> wanted;
    llama_batch fill(std::span<const BatchToken> piece);
  };

  Status require_context() const;
  Status check_tokens(std::span<const BatchToken> batch) const;
  Result<ContextSpec> resolve(const ContextSpec& spec) const;
  Status check_device_memory(const ContextSpec& spec) const;
  std::size_t piece_length(std::span<const BatchToken> rest) const;
  Status compute_piece(std::span<const BatchToken> piece);
  void keep_rows(std::size_t first, std::size_t length);
  void guard_piece(std::span<const BatchToken> piece);
  void roll_back(std::span<const BatchToken> batch);
  Status poison(std::string_view what);
  Status admit_piece(SeqId seq, const PayloadPiece& piece, std::int32_t delta);
  void drop(SeqId seq, PlaceRange places);

  static bool abort_wanted(void* self);
  static bool on_node(ggml_tensor* node, bool ask, void* self);

  ModelPtr model_;
  const llama_vocab* vocab_;
  ModelFacts facts_;
  Identity identity_;
  std::unique_ptr<ChatTemplate> chat_;
  std::unique_ptr<Open> open_;
  Observer observer_;
  CancelFlag cancel_;
  /// Set once a pass has begun on tokens: moving keys, which comes before, must not be cut in the middle.
  bool may_abort_ = false;

  // Logits of the last compute(): row i of `rows_` or, where it was one pass, llama.cpp's own.
  std::vector<std::int32_t> row_of_;
  std::vector<float> rows_;
  bool one_pass_ = true;
  Arrays arrays_;
};

}  // namespace modeld
