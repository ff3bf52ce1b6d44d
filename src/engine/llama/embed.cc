#include "engine/llama/embed.h"

#include <fmt/format.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>
#include <utility>

#include "engine/llama/backend.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/threads.h"

namespace modeld {
namespace {

/// Texts computed in one batch, at most.
constexpr std::int32_t kTogether = 32;

class LlamaEmbedder final : public Embedder {
 public:
  LlamaEmbedder(ModelPtr model, ContextPtr context) : model_(std::move(model)), context_(std::move(context)) {
    std::array<char, 128> text{};
    if (llama_model_meta_val_str(model_.get(), "general.name", text.data(), text.size()) > 0) name_ = text.data();
    window_ = static_cast<std::int32_t>(llama_n_ubatch(context_.get()));
  }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int32_t dim() const override { return llama_model_n_embd(model_.get()); }

  Result<std::vector<std::vector<float>>> embed(std::span<const std::string> texts) override {
    if (failed_) return fail(ErrorCode::engine_poisoned, "The embedder failed before and is not used again.");
    std::vector<std::vector<float>> vectors;
    vectors.reserve(texts.size());
    Batch batch(window_);
    for (const std::string& text : texts) {
      MODELD_TRY(const std::vector<llama_token> tokens, tokenise(text));
      if (batch.texts == kTogether || batch.tokens() + static_cast<std::int32_t>(tokens.size()) > window_)
        MODELD_TRY_VOID(flush(batch, vectors));
      batch.add(tokens);
    }
    MODELD_TRY_VOID(flush(batch, vectors));
    return vectors;
  }

 private:
  /// Texts side by side, each a sequence from place 0 on.
  struct Batch {
    explicit Batch(std::int32_t window) : raw(llama_batch_init(window, 0, 1)) {}
    ~Batch() { llama_batch_free(raw); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    [[nodiscard]] std::int32_t tokens() const { return raw.n_tokens; }
    void add(std::span<const llama_token> added) {
      for (std::size_t i = 0; i < added.size(); ++i) {
        const auto at = raw.n_tokens++;
        raw.token[at] = added[i];
        raw.pos[at] = static_cast<llama_pos>(i);
        raw.n_seq_id[at] = 1;
        raw.seq_id[at][0] = texts;
        raw.logits[at] = 1;
      }
      ++texts;
    }
    void clear() {
      raw.n_tokens = 0;
      texts = 0;
    }

    llama_batch raw;
    std::int32_t texts = 0;
  };

  Result<std::vector<llama_token>> tokenise(const std::string& text) const {
    const llama_vocab* vocab = llama_model_get_vocab(model_.get());
    std::vector<llama_token> tokens(text.size() + 8);
    const std::int32_t count = llama_tokenize(vocab, text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                                              static_cast<std::int32_t>(tokens.size()), true, false);
    if (count < 0) return fail(ErrorCode::internal, "The embedder's tokenizer wants more tokens than bytes.");
    tokens.resize(static_cast<std::size_t>(count));
    if (count > window_) {
      tokens.resize(static_cast<std::size_t>(window_));
      tokens.back() = llama_vocab_sep(vocab);
    }
    return tokens;
  }

  Status flush(Batch& batch, std::vector<std::vector<float>>& vectors) {
    if (batch.texts == 0) return {};
    failed_ = llama_encode(context_.get(), batch.raw) != 0;
    if (failed_) return fail(ErrorCode::engine_failed, fmt::format("The embedder failed ({}).", last_llama_error()));
    for (std::int32_t text = 0; text < batch.texts; ++text) {
      const float* pooled = llama_get_embeddings_seq(context_.get(), text);
      failed_ = pooled == nullptr;
      if (failed_) return fail(ErrorCode::engine_failed, "The embedder gave no vector for a text.");
      std::vector<float> vector(pooled, pooled + dim());
      double square = 0.0;
      for (const float x : vector) square += double{x} * double{x};
      const auto scale = static_cast<float>(square > 0.0 ? 1.0 / std::sqrt(square) : 0.0);
      for (float& x : vector) x *= scale;
      vectors.push_back(std::move(vector));
    }
    batch.clear();
    return {};
  }

  ModelPtr model_;
  ContextPtr context_;
  bool failed_ = false;
  std::string name_ = "embedder";
  std::int32_t window_ = 0;
};

}  // namespace

Result<std::unique_ptr<Embedder>> open_llama_embedder(const std::filesystem::path& gguf, std::int32_t threads) {
  start_llama_backend();
  std::error_code error;
  if (!std::filesystem::exists(gguf, error))
    return fail(ErrorCode::file_missing, fmt::format("There is no embedder {}. Check the name.", gguf.string()));
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = 0;
  MODELD_TRY(ModelPtr model, load_weights(gguf, params));
  llama_context_params context_params = llama_context_default_params();
  // Attention looks both ways, so that a text must be computed in one piece: no batch is longer than the window.
  const auto window = static_cast<std::uint32_t>(std::min(512, llama_model_n_ctx_train(model.get())));
  context_params.n_ctx = window;
  context_params.n_batch = window;
  context_params.n_ubatch = window;
  context_params.n_seq_max = kTogether;
  context_params.embeddings = true;
  const std::int32_t count = thread_counts(threads).prefill;
  context_params.n_threads = count;
  context_params.n_threads_batch = count;
  ContextPtr context(llama_init_from_model(model.get(), context_params));
  if (context == nullptr)
    return fail(ErrorCode::model_load_failed,
                fmt::format("llama.cpp cannot use {} ({}).", gguf.string(), last_llama_error()));
  const auto pooling = llama_pooling_type(context.get());
  if (pooling == LLAMA_POOLING_TYPE_NONE || pooling == LLAMA_POOLING_TYPE_RANK)
    return fail(ErrorCode::unsupported_operation,
                fmt::format("{} gives no vector for a sentence; name a sentence embedder.", gguf.string()));
  return std::make_unique<LlamaEmbedder>(std::move(model), std::move(context));
}

}  // namespace modeld
