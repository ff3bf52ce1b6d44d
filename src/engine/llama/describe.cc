#include "engine/llama/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/llama/architectures.h"
#include "engine/llama/gguf_file.h"
#include "engine/llama/model_facts.h"

namespace modeld {
namespace {

constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxHeads = 65536;
constexpr std::int64_t kMaxDim = std::int64_t{1} << 24;

/// Reads the keys of one architecture: "llama.block_count" is key("block_count").
class Reader {
 public:
  Reader(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}
  [[nodiscard]] const GgufFile& file() const { return file_; }
  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback) const {
    return file_.integer(key(name)).value_or(fallback);
  }
  [[nodiscard]] double real(std::string_view name, double fallback) const {
    return file_.real(key(name)).value_or(fallback);
  }
  /// A number for all layers, or one for each.
  [[nodiscard]] std::vector<std::int64_t> per_layer(std::string_view name, std::size_t layers,
                                                    std::vector<std::int64_t> fallback) const {
    if (const auto one = file_.integer(key(name))) return std::vector<std::int64_t>(layers, *one);
    auto many = file_.integers(key(name));
    if (many.size() < layers) return fallback;
    many.resize(layers);
    return many;
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

struct Scaling {
  std::string kind = "none";
  double freq_scale = 1.0;
};

Scaling read_scaling(const Reader& reader) {
  Scaling scaling;
  const double factor = reader.real("rope.scaling.factor", reader.real("rope.scale_linear", 0.0));
  // llama.cpp takes an unnamed scaling for linear.
  scaling.kind = reader.file().text(reader.key("rope.scaling.type")).value_or("linear");
  if (factor > 0.0 && scaling.kind != "none")
    scaling.freq_scale = static_cast<double>(1.0F / static_cast<float>(factor));
  if (scaling.kind == "linear" && factor <= 0.0) scaling.kind = "none";
  return scaling;
}

Result<std::vector<float>> read_freq_factors(const Reader& reader, const Scaling& scaling) {
  // "longrope" has two sets; the short one holds inside the window that modeld keeps to.
  if (scaling.kind == "longrope") {
    if (reader.file().has_tensor("rope_factors_short.weight"))
      return reader.file().read_f32("rope_factors_short.weight");
  } else if (reader.file().has_tensor("rope_freqs.weight")) {
    return reader.file().read_f32("rope_freqs.weight");
  }
  return std::vector<float>{};
}

/// The window of each layer; 0 for global ones.
std::vector<std::int32_t> read_windows(const Reader& reader, const Architecture* known, std::size_t layers) {
  std::vector<std::int32_t> windows(layers, 0);
  if (known == nullptr || known->period == 0) return windows;
  const auto window =
      static_cast<std::int32_t>(reader.integer("attention.sliding_window", std::int64_t{known->default_window}));
  if (window <= 0) return windows;
  const auto pattern = reader.file().integers(reader.key("attention.sliding_window_pattern"));
  const std::int64_t period = reader.integer("attention.sliding_window_pattern", known->period);
  for (std::size_t i = 0; i < layers; ++i) {
    const bool windowed =
        pattern.size() >= layers ? pattern[i] != 0 : period == 0 || static_cast<std::int64_t>(i) % period < period - 1;
    if (windowed) windows[i] = window;
  }
  return windows;
}

bool layer_rotates(const Architecture* known, std::size_t layer, std::int32_t window, bool any_window) {
  if (known == nullptr || known->rope == RopeStyle::none) return false;
  switch (known->unrotated) {
    case UnrotatedLayers::none:
      return true;
    case UnrotatedLayers::every_fourth:
      return (layer + 1) % 4 != 0;
    case UnrotatedLayers::global:
      return window > 0 || !any_window;
  }
  return true;
}

Status read_layers(const Reader& reader, const Architecture* known, const Scaling& scaling, ModelGeometry& geometry) {
  const std::int64_t count = reader.integer("block_count", 0);
  if (count <= 0 || count > kMaxLayers)
    return fail(ErrorCode::model_load_failed, "The model file names no usable number of layers.", {{"layers", count}});
  const auto layers = static_cast<std::size_t>(count);
  const auto heads = reader.per_layer("attention.head_count", layers, std::vector<std::int64_t>(layers, 0));
  const auto kv_heads = reader.per_layer("attention.head_count_kv", layers, heads);
  const std::int64_t split = heads[0] > 0 ? geometry.embedding / heads[0] : 0;
  const std::int64_t key_dim = reader.integer("attention.key_length", split);
  const std::int64_t value_dim = reader.integer("attention.value_length", split);
  const std::int64_t rope_dims = reader.integer("rope.dimension_count", key_dim);
  const auto windows = read_windows(reader, known, layers);
  const bool any_window = std::ranges::any_of(windows, [](std::int32_t w) { return w > 0; });
  const double base = reader.real("rope.freq_base", 10000.0);
  const bool inherits = known != nullptr && known->window_inherits_base;
  const double window_base = reader.real("rope.freq_base_swa", inherits ? base : 10000.0);
  MODELD_TRY(const auto factors, read_freq_factors(reader, scaling));
  for (std::size_t i = 0; i < layers; ++i) {
    const bool windowed = windows[i] > 0;
    LayerGeometry layer;
    const auto key = windowed ? reader.integer("attention.key_length_swa", key_dim) : key_dim;
    const auto value = windowed ? reader.integer("attention.value_length_swa", value_dim) : value_dim;
    const auto dims = windowed ? reader.integer("rope.dimension_count_swa", rope_dims) : rope_dims;
    for (const std::int64_t n : {heads[i], kv_heads[i], key, value, dims})
      if (n < 0 || n > kMaxHeads)
        return fail(ErrorCode::model_load_failed, fmt::format("Layer {} of the model file has nonsensical sizes.", i),
                    {{"value", n}});
    layer.heads = static_cast<std::int32_t>(heads[i]);
    layer.kv_heads = static_cast<std::int32_t>(kv_heads[i]);
    layer.key_dim = static_cast<std::int32_t>(key);
    layer.value_dim = static_cast<std::int32_t>(value);
    layer.window = windows[i];
    if (layer_rotates(known, i, windows[i], any_window)) {
      layer.rope.style = known->rope;
      layer.rope.dims = static_cast<std::int32_t>(dims);
      layer.rope.freq_base = windowed ? window_base : base;
      layer.rope.freq_scale = windowed && !known->window_inherits_scale ? 1.0 : scaling.freq_scale;
      if (2 * static_cast<std::int64_t>(factors.size()) == dims) layer.rope.freq_factors = factors;
    }
    geometry.layers.push_back(std::move(layer));
  }
  return {};
}

void refuse(ModelGeometry& geometry, ErrorCode code, std::string reason) {
  geometry.unsupported.push_back({code, std::move(reason), true});
}

void find_unsupported_kind(const Architecture* known, ModelGeometry& geometry) {
  const std::string& name = geometry.architecture;
  if (known == nullptr) {
    refuse(geometry, ErrorCode::unsupported_geometry,
           fmt::format("modeld does not know the layers of architecture {}", name));
    return;
  }
  switch (known->kind) {
    case AttentionKind::causal:
      return;
    case AttentionKind::recurrent:
    case AttentionKind::hybrid:
      refuse(geometry, ErrorCode::unsupported_recurrent,
             fmt::format("{} keeps its past in recurrent states, not in keys and values", name));
      return;
    case AttentionKind::encoder:
      refuse(geometry, ErrorCode::unsupported_encoder, fmt::format("{} encodes text, it does not generate", name));
      return;
    case AttentionKind::other:
      refuse(geometry, ErrorCode::unsupported_geometry, fmt::format("{}: {}", name, known->reason));
      return;
  }
}

void find_unsupported_layers(const Reader& reader, ModelGeometry& geometry) {
  const auto count = [&](std::string_view name) { return reader.integer(name, 0); };
  if (geometry.unsupported.empty()) {
    if (reader.file().any_key_starts_with(reader.key("ssm.")))
      refuse(geometry, ErrorCode::unsupported_recurrent, "some layers keep recurrent states");
    if (reader.file().boolean(reader.key("attention.causal")) == false)
      refuse(geometry, ErrorCode::unsupported_encoder, "its attention is not causal");
    if (count("attention.kv_lora_rank") > 0)
      refuse(geometry, ErrorCode::unsupported_geometry, "it compresses keys and values (MLA)");
    if (count("attention.shared_kv_layers") > 0)
      refuse(geometry, ErrorCode::unsupported_geometry, "its layers share keys and values");
    if (count("nextn_predict_layers") > 0)
      refuse(geometry, ErrorCode::unsupported_geometry, "it has extra layers that predict several tokens");
    const auto sections = reader.file().integers(reader.key("rope.dimension_sections"));
    if (std::ranges::any_of(sections, [](std::int64_t n) { return n != 0; }))
      refuse(geometry, ErrorCode::unsupported_geometry, "its tokens have several positions each (M-RoPE)");
    for (const LayerGeometry& layer : geometry.layers) {
      const bool whole = layer.heads > 0 && layer.kv_heads > 0 && layer.heads % layer.kv_heads == 0;
      const bool sized = layer.key_dim > 0 && layer.value_dim > 0 && layer.rope.dims % 2 == 0;
      if (whole && sized && layer.rope.dims <= layer.key_dim) continue;
      refuse(geometry, ErrorCode::unsupported_geometry, "a layer has no ordinary heads");
      break;
    }
  }
  if (reader.file().integer("split.count").value_or(1) > 1)
    refuse(geometry, ErrorCode::unsupported_operation, "the model is split over several files; merge them first");
}

/// What llama.cpp does wrong when it moves keys: rotate layers that have no rotary embedding, and scale magnitudes
/// twice.
bool find_unmovable(const Architecture* known, const Scaling& scaling, ModelGeometry& geometry) {
  if (!geometry.unsupported.empty()) return false;
  if (known->unrotated != UnrotatedLayers::none) {
    geometry.unsupported.push_back({ErrorCode::unsupported_operation,
                                    "llama.cpp would rotate keys of layers without rotary embedding when moving "
                                    "them: blocks return to their own places only",
                                    false});
    return false;
  }
  if (scaling.kind == "yarn" || scaling.kind == "longrope") {
    geometry.unsupported.push_back({ErrorCode::unsupported_operation,
                                    fmt::format("{} scales magnitudes with the positions: blocks return to their own "
                                                "places only, and keys cannot be scored at other places",
                                                scaling.kind == "yarn" ? "YaRN" : "LongRoPE"),
                                    false});
    return false;
  }
  return true;
}

std::string rope_text(const ModelGeometry& geometry, const Scaling& scaling) {
  const LayerGeometry* global = nullptr;
  const LayerGeometry* windowed = nullptr;
  for (const LayerGeometry& layer : geometry.layers) (layer.window > 0 ? windowed : global) = &layer;
  std::string text;
  const auto add = [&](std::string_view name, const LayerGeometry* layer) {
    if (layer == nullptr) return;
    text += fmt::format("{}{}base={} scale={} dims={}", text.empty() ? "" : "; ", name, layer->rope.freq_base,
                        layer->rope.freq_scale, layer->rope.dims);
  };
  add("", global);
  add("window: ", windowed);
  return text + " type=" + scaling.kind;
}

Status read_scalars(const Reader& reader, ModelGeometry& geometry) {
  const GgufFile& file = reader.file();
  const std::int64_t trained = reader.integer("context_length", 0);
  const std::int64_t embedding = reader.integer("embedding_length", 0);
  const auto listed = static_cast<std::int64_t>(file.array_size("tokenizer.ggml.tokens"));
  const std::int64_t vocabulary = listed > 0 ? listed : reader.integer("vocab_size", 0);
  // What is there is told, whatever else is missing.
  const auto known = [](std::int64_t value, std::int64_t most) {
    return static_cast<std::int32_t>(value > 0 && value <= most ? value : 0);
  };
  geometry.trained_window = known(trained, std::numeric_limits<std::int32_t>::max());
  geometry.embedding = known(embedding, kMaxDim);
  geometry.vocabulary = known(vocabulary, kMaxDim);
  if (trained <= 0 || trained > std::numeric_limits<std::int32_t>::max() || embedding <= 0 || embedding > kMaxDim ||
      vocabulary <= 0 || vocabulary > kMaxDim)
    return fail(ErrorCode::model_load_failed,
                "The model file does not say its trained window, embedding and vocabulary. It may be an adapter, a "
                "projector or a part of a split model.",
                {{"context_length", trained}, {"embedding_length", embedding}, {"vocabulary_tokens", vocabulary}});
  return {};
}

}  // namespace

Result<ModelFacts> read_model_facts(const std::filesystem::path& gguf) {
  MODELD_TRY(const auto file, GgufFile::open(gguf));
  const auto architecture = file.text("general.architecture");
  if (!architecture)
    return fail(ErrorCode::model_load_failed, fmt::format("{} does not name its architecture.", gguf.string()));
  const Reader reader(file, *architecture);
  const Architecture* const known = find_architecture(*architecture);
  ModelFacts facts;
  ModelGeometry& geometry = facts.geometry;
  geometry.architecture = *architecture;
  geometry.name = file.text("general.name").value_or(gguf.stem().string());
  geometry.weight_bytes = file.tensor_bytes();
  const auto chat_template = file.text("tokenizer.chat_template");
  geometry.has_chat_template = chat_template.has_value();
  find_unsupported_kind(known, geometry);
  const Scaling scaling = read_scaling(reader);
  // A model of another kind is described as far as its file goes: the reason is worth more than an error.
  auto scalars = read_scalars(reader, geometry);
  auto layers = scalars ? read_layers(reader, known, scaling, geometry) : scalars;
  if (!layers && geometry.unsupported.empty()) return tl::unexpected(std::move(layers).error());
  find_unsupported_layers(reader, geometry);
  facts.can_move = find_unmovable(known, scaling, geometry);
  for (const LayerGeometry& layer : geometry.layers) facts.window = std::max(facts.window, layer.window);
  facts.rope_text = rope_text(geometry, scaling);
  facts.tokenizer_digest = file.digest_of("tokenizer.ggml.").hex();
  if (chat_template) facts.template_digest = Hasher().text(*chat_template).finish().hex();
  return facts;
}

Result<ModelGeometry> describe_llama(const std::filesystem::path& gguf) {
  MODELD_TRY(auto facts, read_model_facts(gguf));
  return std::move(facts.geometry);
}

Status check_supported(const ModelGeometry& geometry) {
  for (const auto& item : geometry.unsupported)
    if (item.fatal)
      return fail(item.code, fmt::format("modeld cannot work with this model: {}. Choose another model.", item.reason));
  return {};
}

}  // namespace modeld
