#include "engine/llama/observe.h"

#include <fmt/format.h>
#include <ggml-backend.h>
#include <ggml.h>

#include <charconv>
#include <cstring>
#include <string_view>

namespace modeld {
namespace {

/// "Qcur_normed-12" → 12 if it begins with `stem`; -1 otherwise.
std::int32_t layer_in(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return -1;
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return -1;
  std::int32_t layer = -1;
  const auto [end, error] = std::from_chars(name.data() + dash + 1, name.data() + name.size(), layer);
  return error == std::errc{} && end == name.data() + name.size() ? layer : -1;
}

Status check_head(const ModelGeometry& geometry, std::int32_t layer, std::int32_t head, bool query, bool before_rope) {
  if (layer < 0 || layer >= static_cast<std::int32_t>(geometry.layers.size()))
    return fail(ErrorCode::engine_misuse, fmt::format("The model has no layer {}.", layer), {{"layer", layer}});
  const LayerGeometry& shape = geometry.layers[static_cast<std::size_t>(layer)];
  const std::int32_t heads = query ? shape.heads : shape.kv_heads;
  if (head < 0 || head >= heads)
    return fail(ErrorCode::engine_misuse,
                fmt::format("Layer {} has no {} head {}.", layer, query ? "query" : "KV", head),
                {{"layer", layer}, {"head", head}, {"heads", heads}});
  if (before_rope || shape.rope.style != RopeStyle::none) return {};
  return fail(ErrorCode::unsupported_operation, fmt::format("Layer {} does not rotate its keys.", layer),
              {{"layer", layer}});
}

bool reads(const ggml_tensor* rope, const ggml_tensor* node) {
  const ggml_tensor* source = rope->src[0];
  if (source == nullptr || node == nullptr) return false;
  return source == node || source->view_src == node || (node->view_src != nullptr && source == node->view_src);
}

}  // namespace

Status Observer::set(const ObserveSpec& spec, const ModelGeometry& geometry) {
  for (const HeadRef& q : spec.queries) MODELD_TRY_VOID(check_head(geometry, q.layer, q.head, true, spec.before_rope));
  for (const KvHeadRef& k : spec.keys)
    MODELD_TRY_VOID(check_head(geometry, k.layer, k.kv_head, false, spec.before_rope));
  spec_ = spec;
  targets_.clear();
  observation_ = {};
  observation_.queries.resize(spec.queries.size());
  observation_.keys.resize(spec.keys.size());
  const auto add = [&](std::int32_t layer, std::int32_t head, bool query, std::vector<float>& out) {
    const LayerGeometry& shape = geometry.layers[static_cast<std::size_t>(layer)];
    Target& target = targets_[Key{layer, query}];
    target.heads = query ? shape.heads : shape.kv_heads;
    target.dim = shape.key_dim;
    target.rows.push_back({head, &out});
  };
  for (std::size_t i = 0; i < spec.queries.size(); ++i)
    add(spec.queries[i].layer, spec.queries[i].head, true, observation_.queries[i]);
  for (std::size_t i = 0; i < spec.keys.size(); ++i)
    add(spec.keys[i].layer, spec.keys[i].kv_head, false, observation_.keys[i]);
  return {};
}

void Observer::clear() {
  observation_.tokens = 0;
  for (auto& rows : observation_.queries) rows.clear();
  for (auto& rows : observation_.keys) rows.clear();
}

void Observer::begin(std::int32_t tokens) {
  clear();
  if (!active()) return;
  for (auto& [key, target] : targets_)
    for (const Row& row : target.rows)
      row.out->reserve(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(target.dim));
}

void Observer::begin_piece(std::int32_t tokens) {
  piece_tokens_ = tokens;
  for (auto& [key, target] : targets_) {
    target.staged_node = nullptr;
    target.done = false;
  }
}

Status Observer::end_piece() {
  for (const auto& [key, target] : targets_)
    if (!target.done)
      return fail(ErrorCode::unsupported_operation,
                  fmt::format("llama.cpp's graph of this model does not show the {} of layer {}.",
                              key.query ? "queries" : "keys", key.layer),
                  {{"layer", key.layer}});
  observation_.tokens += active() ? piece_tokens_ : 0;
  return {};
}

Observer::Target* Observer::target_of(const ggml_tensor* node) {
  const std::string_view name = node->name;
  if (name.empty() || (name[0] != 'Q' && name[0] != 'K')) return nullptr;
  const bool query = name[0] == 'Q';
  const std::int32_t layer = layer_in(name, query ? "Qcur" : "Kcur");
  if (layer < 0) return nullptr;
  const auto it = targets_.find(Key{layer, query});
  return it == targets_.end() || it->second.done ? nullptr : &it->second;
}

bool Observer::wants(const ggml_tensor* node) {
  if (targets_.empty()) return false;
  Target* const target = target_of(node);
  if (target == nullptr) return false;
  if (node->op != GGML_OP_ROPE) return spec_.before_rope;
  if (!spec_.before_rope) return true;
  if (reads(node, target->staged_node)) commit(*target);
  return false;
}

void Observer::take(const ggml_tensor* node) {
  Target* const target = target_of(node);
  if (target == nullptr || !stage(*target, node)) return;
  if (!spec_.before_rope && node->op == GGML_OP_ROPE) commit(*target);
}

bool Observer::stage(Target& target, const ggml_tensor* node) {
  if (node->type != GGML_TYPE_F32 || node->nb[0] != sizeof(float)) return false;
  const std::int64_t tokens = piece_tokens_;
  std::size_t head_stride = 0;
  std::size_t token_stride = 0;
  if (node->ne[0] == target.dim && node->ne[1] == target.heads && node->ne[2] == tokens) {
    head_stride = node->nb[1];
    token_stride = node->nb[2];
  } else if (node->ne[0] == std::int64_t{target.dim} * target.heads && node->ne[1] == tokens) {
    head_stride = static_cast<std::size_t>(target.dim) * sizeof(float);
    token_stride = node->nb[1];
  } else {
    return false;
  }
  const auto* data = static_cast<const std::byte*>(node->data);
  const ggml_backend_buffer_t buffer = node->view_src != nullptr ? node->view_src->buffer : node->buffer;
  if (buffer == nullptr || !ggml_backend_buffer_is_host(buffer)) {
    fetched_.resize(ggml_nbytes(node));
    ggml_backend_tensor_get(node, fetched_.data(), 0, fetched_.size());
    data = fetched_.data();
  }
  const auto dim = static_cast<std::size_t>(target.dim);
  target.staged.resize(target.rows.size() * static_cast<std::size_t>(tokens) * dim);
  float* out = target.staged.data();
  for (const Row& row : target.rows)
    for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t, out += dim)
      std::memcpy(out, data + t * token_stride + static_cast<std::size_t>(row.head) * head_stride, dim * sizeof(float));
  target.staged_node = node;
  return true;
}

void Observer::commit(Target& target) {
  const std::size_t each = static_cast<std::size_t>(piece_tokens_) * static_cast<std::size_t>(target.dim);
  for (std::size_t i = 0; i < target.rows.size(); ++i) {
    const float* const from = target.staged.data() + i * each;
    target.rows[i].out->insert(target.rows[i].out->end(), from, from + each);
  }
  target.done = true;
}

}  // namespace modeld
