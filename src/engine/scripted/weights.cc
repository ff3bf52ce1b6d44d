#include "engine/scripted/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/rope.h"

namespace modeld {
namespace {

// Gains are in units of a finished score. With 64-dimensional embeddings a foreign word scores 0 ± 1/8 of a match, so a
// thousand of them stay far below one; the sink lies between.
constexpr float kPositionGain = 24.0F;
constexpr float kMatchGain = 24.0F;
constexpr float kSecondMatch = 0.6F;
constexpr float kSinkGain = 0.7F * kMatchGain;
constexpr float kBroadGain = 10.0F;
constexpr float kBroadSink = 0.9F * kBroadGain;
constexpr float kBroadShare = 0.1F;
constexpr float kLogitGain = 20.0F;
// Layer 1's position: what a match at the same place has over one far away.
constexpr float kNearGain = 2.0F;
constexpr float kNearKey = 0.25F;

constexpr int kFirst = ScriptedWeights::kRopeDims;
constexpr int kSecond = kFirst + ScriptedWeights::kEmbedding;
constexpr int kSink = ScriptedWeights::kKeyDim - 1;
constexpr int kSecondDims = kSink - kSecond;

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// Near enough to a normal number: the sum of four 16-bit uniform ones, centred.
float bell(std::uint64_t bits) {
  double sum = 0.0;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>((bits >> (16 * i)) & 0xffffU);
  return static_cast<float>(sum / 65535.0 - 2.0);
}

float score_scale() { return std::sqrt(static_cast<float>(ScriptedWeights::kKeyDim)); }

using Lanes = float __attribute__((vector_size(16)));

Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

}  // namespace

float fixed_dot(const float* a, const float* b, int n) {
  std::array<Lanes, 4> sum{};
  for (int i = 0; i < n; i += 16) {
    sum[0] += load(a + i) * load(b + i);
    sum[1] += load(a + i + 4) * load(b + i + 4);
    sum[2] += load(a + i + 8) * load(b + i + 8);
    sum[3] += load(a + i + 12) * load(b + i + 12);
  }
  const Lanes all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  return (all[0] + all[1]) + (all[2] + all[3]);
}

ScriptedWeights::ScriptedWeights(std::uint64_t seed, std::int32_t vocabulary, RopeStyle style)
    : embeddings_(static_cast<std::size_t>(vocabulary) * kEmbedding) {
  rope_.style = style;
  rope_.dims = style == RopeStyle::none ? 0 : kRopeDims;
  if (rope_.dims > 0) frequencies_ = rope_frequencies(rope_);
  std::uint64_t state = mix(seed);
  for (std::int32_t token = 0; token < vocabulary; ++token) {
    float* row = embeddings_.data() + static_cast<std::size_t>(token) * kEmbedding;
    float square = 0.0F;
    for (int i = 0; i < kEmbedding; ++i) {
      state = mix(state);
      row[i] = bell(state);
      square += row[i] * row[i];
    }
    for (int i = 0; i < kEmbedding; ++i) row[i] /= std::sqrt(square);
  }
}

std::int64_t ScriptedWeights::bytes() const {
  return static_cast<std::int64_t>(embeddings_.size() * sizeof(float) + frequencies_.size() * sizeof(double));
}

std::span<const float> ScriptedWeights::embedding(Token token) const {
  return std::span(embeddings_).subspan(static_cast<std::size_t>(token) * kEmbedding, kEmbedding);
}

// Every pair of rotated dimensions becomes (amplitude, 0) turned by -steps_back: rotated by its place p, it is in phase
// with an unturned pair that was rotated by p - steps_back.
void ScriptedWeights::set_phase(std::span<float> vector, float amplitude, double steps_back) const {
  const std::size_t pairs = kRopeDims / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::size_t first = rope_.style == RopeStyle::neox ? i : 2 * i;
    vector[first] = amplitude;
    vector[rope_.style == RopeStyle::neox ? i + pairs : first + 1] = 0.0F;
  }
  if (rope_.style != RopeStyle::none) rotate(vector, rope_, frequencies_, -steps_back);
}

void ScriptedWeights::key(int layer, Token token, std::span<const float> one_before, std::span<const float> two_before,
                          std::span<float> out) const {
  std::ranges::fill(out, 0.0F);
  set_phase(out, layer == 0 ? 1.0F : kNearKey, 0.0);
  const auto own = embedding(token);
  if (layer == 0) {
    std::ranges::copy(own, out.begin() + kFirst);
    return;
  }
  std::ranges::copy(one_before, out.begin() + kFirst);
  std::ranges::copy(two_before.first(kSecondDims), out.begin() + kSecond);
  // A token that finds nobody before it attends itself: x1 is then its own embedding.
  const float self = fixed_dot(one_before.data(), own.data(), kEmbedding);
  out[kSink] = std::clamp((self - 0.5F) / 0.4F, 0.0F, 1.0F);
}

void ScriptedWeights::query(int layer, int head, Token token, std::span<const float> one_before,
                            std::span<float> out) const {
  std::ranges::fill(out, 0.0F);
  const float scale = score_scale();
  const float pairs = static_cast<float>(kRopeDims) / 2.0F;
  if (layer == 0) {
    set_phase(out, scale * kPositionGain, head + 1.0);
    return;
  }
  set_phase(out, scale * kNearGain / (pairs * kNearKey), 0.0);
  const auto own = embedding(token);
  const float gain = scale * (head == 0 ? kMatchGain : kBroadGain);
  for (std::size_t i = 0; i < kEmbedding; ++i) out[kFirst + i] = gain * own[i];
  out[kSink] = scale * (head == 0 ? kSinkGain : kBroadSink);
  if (head != 0) return;
  const float second = gain * kSecondMatch * static_cast<float>(kEmbedding) / static_cast<float>(kSecondDims);
  for (std::size_t i = 0; i < kSecondDims; ++i) out[kSecond + i] = second * one_before[i];
}

int ScriptedWeights::active_dims(int layer, int /*head*/) { return layer == 0 ? kRopeDims : kKeyDim; }

void ScriptedWeights::logits(std::span<const float> sharp, std::span<const float> broad, std::span<float> out) const {
  std::array<float, kValueDim> mixed{};
  for (std::size_t i = 0; i < kValueDim; ++i) mixed[i] = kLogitGain * (sharp[i] + kBroadShare * broad[i]);
  for (std::size_t token = 0; token < out.size(); ++token) {
    out[token] = fixed_dot(mixed.data(), embeddings_.data() + token * kEmbedding, kEmbedding);
  }
}

}  // namespace modeld
