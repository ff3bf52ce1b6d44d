#include "model/geometry.h"

#include "base/check.h"

namespace modeld {

bool ModelGeometry::supports(KvType type) const {
  // The engines read a quantised cache head by head, so that a head, not only a layer's row, must be whole groups.
  const std::int32_t group = type == KvType::f16 ? 1 : 32;
  for (const LayerGeometry& layer : layers) {
    if (layer.kv_heads <= 0 || layer.key_dim <= 0 || layer.value_dim <= 0) return false;
    if (layer.key_dim % group != 0 || layer.value_dim % group != 0) return false;
  }
  return !layers.empty();
}

std::int64_t ModelGeometry::kv_bytes_per_token(KvType type) const {
  if (!supports(type)) return 0;
  std::int64_t bytes = 0;
  for (const LayerGeometry& layer : layers) {
    const std::int64_t heads = layer.kv_heads;
    bytes += kv_bytes(type, heads * layer.key_dim) + kv_bytes(type, heads * layer.value_dim);
  }
  return bytes;
}

KvHeadRef kv_head_of(const ModelGeometry& geometry, HeadRef head) {
  MODELD_CHECK(head.layer >= 0 && static_cast<std::size_t>(head.layer) < geometry.layers.size());
  const LayerGeometry& layer = geometry.layers[static_cast<std::size_t>(head.layer)];
  MODELD_CHECK(head.head >= 0 && head.head < layer.heads);
  MODELD_CHECK(layer.kv_heads > 0 && layer.heads % layer.kv_heads == 0);
  return KvHeadRef{head.layer, head.head / (layer.heads / layer.kv_heads)};
}

}  // namespace modeld
