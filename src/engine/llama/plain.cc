#include "engine/llama/plain.h"

#include <fmt/format.h>
#include <llama.h>

#include <algorithm>

#include "engine/llama/backend.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/threads.h"

namespace modeld {
namespace {

constexpr std::size_t kBatch = 512;

class PlainLlama final : public PlainModel {
 public:
  explicit PlainLlama(ModelPtr model) : model_(std::move(model)) {}
  ~PlainLlama() override { close_context(); }

  Status open_context(std::int32_t cells, std::int32_t threads) override {
    close_context();
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<std::uint32_t>(cells);
    params.n_batch = kBatch;
    params.n_ubatch = kBatch;
    params.n_seq_max = 1;
    const ThreadCounts count = thread_counts(threads);
    params.n_threads = count.decode;
    params.n_threads_batch = count.prefill;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    context_.reset(llama_init_from_model(model_.get(), params));
    if (context_ == nullptr) {
      return fail(ErrorCode::device_budget_exceeded,
                  fmt::format("llama.cpp could not open a context of {} cells ({}).", cells, last_llama_error()),
                  {{"cells", cells}});
    }
    return {};
  }

  void close_context() override { context_.reset(); }

  Status compute(std::span<const Token> tokens) override {
    if (context_ == nullptr) return fail(ErrorCode::engine_misuse, "No context is open. Open one first.");
    std::vector<llama_token> all(tokens.begin(), tokens.end());
    for (std::size_t first = 0; first < all.size(); first += kBatch) {
      const std::size_t size = std::min(kBatch, all.size() - first);
      const int rc =
          llama_decode(context_.get(), llama_batch_get_one(all.data() + first, static_cast<std::int32_t>(size)));
      if (rc != 0) return fail(ErrorCode::engine_failed, fmt::format("llama.cpp failed with status {}.", rc));
    }
    llama_synchronize(context_.get());
    return {};
  }

  std::span<const float> logits() const override {
    const auto width = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model_.get())));
    return {llama_get_logits_ith(context_.get(), -1), width};
  }

  Token greedy() const override {
    const std::span<const float> row = logits();
    return static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
  }

 private:
  ModelPtr model_;
  ContextPtr context_;
};

}  // namespace

Result<std::unique_ptr<PlainModel>> open_plain_llama(const std::filesystem::path& gguf) {
  start_llama_backend();
  llama_model_params params = llama_model_default_params();
  params.use_extra_bufts = true;
  MODELD_TRY(ModelPtr model, load_weights(gguf, params));
  return std::make_unique<PlainLlama>(std::move(model));
}

}  // namespace modeld
