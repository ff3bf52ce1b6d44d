#include "engine/llama/open.h"

#include <fmt/format.h>
#include <ggml-backend.h>

#include "engine/llama/backend.h"
#include "engine/llama/llama_engine.h"

namespace modeld {
namespace {

struct Loading {
  const ProgressSink& progress;
  const CancelFlag* cancel;
};

bool on_progress(float done, void* user_data) {
  const auto* loading = static_cast<const Loading*>(user_data);
  report(loading->progress, "loading the model", static_cast<std::uint64_t>(done * 100.0F), 100, "percent");
  return loading->cancel == nullptr || !loading->cancel->requested();
}

bool has_accelerator() {
  return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU) != nullptr ||
         ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_IGPU) != nullptr;
}

RopeStyle style_of(llama_rope_type type) {
  switch (type) {
    case LLAMA_ROPE_TYPE_NORM:
      return RopeStyle::norm;
    case LLAMA_ROPE_TYPE_NEOX:
      return RopeStyle::neox;
    default:
      return RopeStyle::none;
  }
}

/// The description and the loaded model must say the same, or every number derived from the former is worthless.
Status compare(const ModelFacts& facts, const llama_model* model) {
  const ModelGeometry& geometry = facts.geometry;
  if (llama_model_is_recurrent(model) || llama_model_is_hybrid(model))
    return fail(ErrorCode::unsupported_recurrent, "The model has recurrent layers, which modeld cannot park.");
  if (llama_model_has_encoder(model) || !llama_model_has_decoder(model) || llama_model_is_diffusion(model))
    return fail(ErrorCode::unsupported_encoder, "The model does not generate token by token.");
  const LayerGeometry& first = geometry.layers.front();
  struct Row {
    std::string_view what;
    std::int64_t described;
    std::int64_t loaded;
  };
  const Row rows[] = {
      {"layers", static_cast<std::int64_t>(geometry.layers.size()), llama_model_n_layer(model)},
      {"heads", first.heads, llama_model_n_head(model)},
      {"KV heads", first.kv_heads, llama_model_n_head_kv(model)},
      {"embedding", geometry.embedding, llama_model_n_embd(model)},
      {"trained window", geometry.trained_window, llama_model_n_ctx_train(model)},
      {"vocabulary", geometry.vocabulary, llama_vocab_n_tokens(llama_model_get_vocab(model))},
      {"sliding window", facts.window, llama_model_n_swa(model)},
      {"rotary pairs", static_cast<std::int64_t>(first.rope.style),
       static_cast<std::int64_t>(style_of(llama_model_rope_type(model)))},
  };
  for (const Row& row : rows)
    if (row.described != row.loaded)
      return fail(ErrorCode::unsupported_geometry,
                  fmt::format("The model file says {} {}, llama.cpp sees {}. modeld does not know this variant.",
                              row.what, row.described, row.loaded),
                  {{"described", row.described}, {"loaded", row.loaded}});
  return {};
}

Result<ModelPtr> load(const std::filesystem::path& gguf, const LlamaOptions& options, const Loading& loading) {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = has_accelerator() ? -1 : 0;
  params.use_extra_bufts = options.repack;
  params.progress_callback = on_progress;
  params.progress_callback_user_data = const_cast<Loading*>(&loading);
  Result<ModelPtr> model = load_weights(gguf, params);
  if (!model && loading.cancel != nullptr && loading.cancel->requested())
    return fail(ErrorCode::cancelled, "Cancelled.");
  return model;
}

}  // namespace

Result<ModelPtr> load_weights(const std::filesystem::path& gguf, const llama_model_params& params) {
  try {
    ModelPtr model(llama_model_load_from_file(gguf.c_str(), params));
    if (model != nullptr) return model;
  } catch (const std::exception& e) {
    return fail(ErrorCode::model_load_failed, fmt::format("llama.cpp cannot load {} ({}).", gguf.string(), e.what()));
  }
  return fail(ErrorCode::model_load_failed,
              fmt::format("llama.cpp cannot load {} ({}).", gguf.string(), last_llama_error()));
}

Result<std::unique_ptr<Engine>> open_llama(const std::filesystem::path& gguf, const LlamaOptions& options,
                                           const ProgressSink& progress, const CancelFlag* cancel) {
  start_llama_backend();
  MODELD_TRY(auto facts, read_model_facts(gguf));
  MODELD_TRY_VOID(check_supported(facts.geometry));
  Identity identity;
  identity.model = options.model_digest;
  if (identity.model.empty()) {
    MODELD_TRY(const auto digest, sha256_file(gguf, progress, cancel));
    identity.model = digest.hex();
  }
  const Loading loading{progress, cancel};
  MODELD_TRY(auto model, load(gguf, options, loading));
  MODELD_TRY_VOID(compare(facts, model.get()));
  std::unique_ptr<ChatTemplate> chat;
  if (facts.geometry.has_chat_template) {
    // A template that cannot be parsed takes chat away, not the model.
    if (auto parsed = ChatTemplate::parse(model.get())) chat = std::move(*parsed);
  }
  identity.engine = "llama.cpp " + llama_build_commit();
  identity.tokenizer = facts.tokenizer_digest;
  identity.chat_template = facts.template_digest;
  identity.adds_bos = llama_vocab_get_add_bos(llama_model_get_vocab(model.get()));
  identity.rope = facts.rope_text;
  return std::unique_ptr<Engine>(
      new LlamaEngine(std::move(model), std::move(facts), std::move(identity), std::move(chat)));
}

}  // namespace modeld
