#include "session/attended.h"

#include <algorithm>

#include "base/check.h"
#include "model/rope.h"

namespace modeld {

AttendedKeys::AttendedKeys(const ModelGeometry& geometry, const KeyIndex& index)
    : dim_(static_cast<std::size_t>(index.key_dim())) {
  for (const KvHeadRef head : index.kv_heads()) {
    const LayerGeometry& layer = geometry.layers[static_cast<std::size_t>(head.layer)];
    heads_.push_back({layer, rope_frequencies(layer.rope), {}, {}});
  }
}

void AttendedKeys::append(std::size_t head, std::span<const float> keys, Place at) {
  Head& to = heads_[head];
  MODELD_CHECK(to.places.empty() || to.places.back() < at);
  for (std::size_t row = 0; row * dim_ < keys.size(); ++row, ++at) {
    const auto key = keys.subspan(row * dim_, dim_);
    to.keys.insert(to.keys.end(), key.begin(), key.end());
    rotate(std::span(to.keys).last(dim_), to.layer.rope, to.frequencies, at.get());
    to.places.push_back(at);
  }
}

void AttendedKeys::append(const KeyIndex& index, StreamRange range, Place at) {
  for (std::size_t h = 0; h < heads_.size(); ++h) append(h, index.keys(h, range), at);
}

void AttendedKeys::append(const Observation& seen, Place at) {
  MODELD_CHECK(seen.keys.size() == heads_.size());
  for (std::size_t h = 0; h < heads_.size(); ++h) append(h, seen.keys[h], at);
}

double AttendedKeys::local_lse(std::size_t head, std::span<const float> rotated, Place at) const {
  return local_lse(head, rotated, at, {Place(0), at + 1});
}

double AttendedKeys::local_lse(std::size_t head, std::span<const float> rotated, Place at, PlaceRange places) const {
  const Head& from = heads_[head];
  Place first = places.begin;
  if (from.layer.window > 0) first = std::max(first, at - from.layer.window + 1);
  const Place past = std::max(first, std::min(places.end, at + 1));
  const auto begin = std::lower_bound(from.places.begin(), from.places.end(), first);
  const auto end = std::lower_bound(begin, from.places.end(), past);
  const auto skip = static_cast<std::size_t>(begin - from.places.begin());
  return log_sum_exp(rotated, std::span(from.keys).subspan(skip * dim_), static_cast<std::size_t>(end - begin));
}

std::vector<HeadQueries> queries_of(const ModelGeometry& geometry, const Calibration& calibration,
                                    const KeyIndex& index, const Observation& seen, std::int32_t first,
                                    std::int32_t count, Place at, const AttendedKeys& attended) {
  MODELD_CHECK(seen.queries.size() == calibration.heads.size());
  const auto dim = static_cast<std::size_t>(index.key_dim());
  const auto kv_heads = index.kv_heads();
  std::vector<HeadQueries> queries;
  for (std::size_t h = 0; h < calibration.heads.size(); ++h) {
    const HeadRef ref = calibration.heads[h].head;
    const Rope& rope = geometry.layers[static_cast<std::size_t>(ref.layer)].rope;
    const std::vector<double> frequencies = rope_frequencies(rope);
    const auto kv = std::find(kv_heads.begin(), kv_heads.end(), kv_head_of(geometry, ref));
    MODELD_CHECK(kv != kv_heads.end());
    HeadQueries head;
    head.head = ref;
    head.kv_head = static_cast<std::size_t>(kv - kv_heads.begin());
    for (std::int32_t t = first; t < first + count; ++t) {
      const auto row = std::span(seen.queries[h]).subspan(static_cast<std::size_t>(t) * dim, dim);
      std::vector<float> query(row.begin(), row.end());
      rotate(query, rope, frequencies, (at + t).get());
      head.local_lse.push_back(static_cast<float>(attended.local_lse(head.kv_head, query, at + t)));
      std::copy(row.begin(), row.end(), query.begin());
      rotate(query, rope, frequencies, calibration.distance);
      head.queries.insert(head.queries.end(), query.begin(), query.end());
    }
    queries.push_back(std::move(head));
  }
  return queries;
}

}  // namespace modeld
