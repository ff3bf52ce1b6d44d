// Observed queries and keys: what they are before and after RoPE, and that recording them changes nothing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "conformance/fixture.h"
#include "model/rope.h"

namespace modeld {
namespace {

/// First, middle and last layer, first and last head of each.
ObserveSpec some_heads(const ModelGeometry& geometry, bool before_rope) {
  ObserveSpec spec;
  spec.before_rope = before_rope;
  const auto layers = static_cast<std::int32_t>(geometry.layers.size());
  for (const std::int32_t layer : {0, layers / 2, layers - 1}) {
    const auto& shape = geometry.layers[static_cast<std::size_t>(layer)];
    spec.queries.push_back({layer, 0});
    spec.queries.push_back({layer, shape.heads - 1});
    spec.keys.push_back({layer, 0});
    spec.keys.push_back({layer, shape.kv_heads - 1});
  }
  return spec;
}

class Observed : public Conformance {
 protected:
  Observation watch(std::span<const Token> tokens, const ObserveSpec& spec, std::int32_t start) {
    must(engine().observe(spec));
    feed(tokens, 0, start);
    Observation seen = engine().observation();
    must(engine().observe({}));
    EXPECT_EQ(seen.tokens, static_cast<std::int32_t>(tokens.size()));
    EXPECT_EQ(seen.queries.size(), spec.queries.size());
    EXPECT_EQ(seen.keys.size(), spec.keys.size());
    return seen;
  }
  const LayerGeometry& layer(std::int32_t index) { return engine().geometry().layers[static_cast<std::size_t>(index)]; }
  void rotate_rows(std::vector<float>& rows, const LayerGeometry& shape, std::int32_t start) {
    const auto frequencies = rope_frequencies(shape.rope);
    const auto dim = static_cast<std::size_t>(shape.key_dim);
    for (std::size_t row = 0; row < rows.size() / dim; ++row) {
      rotate(std::span(rows).subspan(row * dim, dim), shape.rope, frequencies, start + static_cast<double>(row));
    }
  }
  /// Row of a query's softmax over keys at or before it, in f64.
  static std::vector<double> attention(std::span<const float> query, std::span<const float> keys, std::size_t count) {
    const std::size_t dim = query.size();
    std::vector<double> weights(count);
    for (std::size_t j = 0; j < count; ++j) {
      double dot = 0.0;
      for (std::size_t d = 0; d < dim; ++d) dot += double{query[d]} * double{keys[j * dim + d]};
      weights[j] = dot / std::sqrt(static_cast<double>(dim));
    }
    const double top = *std::ranges::max_element(weights);
    for (double& w : weights) w = std::exp(w - top);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& w : weights) w /= sum;
    return weights;
  }
};

INSTANTIATE_TEST_SUITE_P(Engine, Observed, testing::ValuesIn(rule_cases()), case_name);

TEST_P(Observed, RotatingWhatIsBeforeRopeGivesWhatIsAfterIt) {
  const auto prompt = story(40);
  const auto before_spec = some_heads(engine().geometry(), true);
  Observation before = watch(prompt, before_spec, 33);
  open();
  const Observation after = watch(prompt, some_heads(engine().geometry(), false), 33);
  for (std::size_t i = 0; i < before_spec.queries.size(); ++i) {
    const auto& shape = layer(before_spec.queries[i].layer);
    ASSERT_EQ(before.queries[i].size(), prompt.size() * static_cast<std::size_t>(shape.key_dim));
    EXPECT_GT(relative_error(after.queries[i], before.queries[i]), 0.01) << "RoPE must have turned something";
    rotate_rows(before.queries[i], shape, 33);
    EXPECT_LT(relative_error(after.queries[i], before.queries[i]), 1e-3) << "layer " << before_spec.queries[i].layer;
  }
  for (std::size_t i = 0; i < before_spec.keys.size(); ++i) {
    const auto& shape = layer(before_spec.keys[i].layer);
    rotate_rows(before.keys[i], shape, 33);
    EXPECT_LT(relative_error(after.keys[i], before.keys[i]), 1e-3) << "layer " << before_spec.keys[i].layer;
  }
}

TEST_P(Observed, KeysBeforeRopeDoNotDependOnThePlace) {
  const auto prompt = story(40);
  const auto spec = some_heads(engine().geometry(), true);
  const Observation here = watch(prompt, spec, 0);
  open();
  const Observation there = watch(prompt, spec, 211);
  for (std::size_t i = 0; i < spec.keys.size(); ++i) {
    const double limit = spec.keys[i].layer == 0 ? 1e-6 : GetParam().vector_bound;
    EXPECT_LT(relative_error(here.keys[i], there.keys[i]), limit) << "layer " << spec.keys[i].layer;
  }
}

// Attention recomputed from queries and keys after RoPE is the same wherever the text stands, and for every head a
// distribution over the places that precede: so the two belong together, row by row.
TEST_P(Observed, AttentionFromObservedVectorsIsTheSameAtOtherPlaces) {
  const auto prompt = story(40);
  const auto spec = some_heads(engine().geometry(), false);
  const Observation here = watch(prompt, spec, 0);
  open();
  const Observation there = watch(prompt, spec, 211);
  for (std::size_t i = 0; i < spec.queries.size(); ++i) {
    const auto dim = static_cast<std::size_t>(layer(spec.queries[i].layer).key_dim);
    const auto kv = kv_head_of(engine().geometry(), spec.queries[i]);
    const auto key = static_cast<std::size_t>(std::ranges::find(spec.keys, kv) - spec.keys.begin());
    ASSERT_LT(key, spec.keys.size());
    double worst = 0.0;
    for (std::size_t row = 1; row < prompt.size(); ++row) {
      const auto a = attention(std::span(here.queries[i]).subspan(row * dim, dim), here.keys[key], row + 1);
      const auto b = attention(std::span(there.queries[i]).subspan(row * dim, dim), there.keys[key], row + 1);
      double distance = 0.0;
      for (std::size_t j = 0; j < a.size(); ++j) distance += std::fabs(a[j] - b[j]) / 2.0;
      worst = std::max(worst, distance);
    }
    EXPECT_LT(worst, 10.0 * GetParam().vector_bound) << "layer " << spec.queries[i].layer;
  }
}

TEST_P(Observed, RowsStandInBatchOrderAcrossSplits) {
  const auto prompt = story(100);
  const auto spec = some_heads(engine().geometry(), true);
  open(512, 2, 32);
  const Observation split = watch(prompt, spec, 0);
  open(512, 2, 128);
  const Observation whole = watch(prompt, spec, 0);
  for (std::size_t i = 0; i < spec.keys.size(); ++i) {
    ASSERT_EQ(split.keys[i].size(), whole.keys[i].size());
    EXPECT_LT(relative_error(whole.keys[i], split.keys[i]), GetParam().vector_bound);
  }
  for (std::size_t i = 0; i < spec.queries.size(); ++i) {
    EXPECT_LT(relative_error(whole.queries[i], split.queries[i]), GetParam().vector_bound);
  }
}

TEST_P(Observed, RecordingChangesNoBitAndEndsWithAnEmptySpec) {
  const auto prompt = story(50);
  const Logits plain = feed(prompt);
  open();
  must(engine().observe(some_heads(engine().geometry(), true)));
  EXPECT_EQ(feed(prompt), plain);
  EXPECT_EQ(engine().observation().tokens, 50);
  must(engine().observe({}));
  feed(std::span(prompt).first(3));
  EXPECT_TRUE(engine().observation().queries.empty());
  EXPECT_TRUE(engine().observation().keys.empty());
}

TEST_P(Observed, HeadsThatTheModelLacksAreRefused) {
  const auto& geometry = engine().geometry();
  const auto layers = static_cast<std::int32_t>(geometry.layers.size());
  const auto refuse = [&](const ObserveSpec& spec) {
    must_refuse(ErrorCode::engine_misuse, "observe", [&] { return engine().observe(spec); });
  };
  refuse({.queries = {{layers, 0}}, .keys = {}});
  refuse({.queries = {{-1, 0}}, .keys = {}});
  refuse({.queries = {{0, geometry.layers[0].heads}}, .keys = {}});
  refuse({.queries = {{0, 0}}, .keys = {{0, geometry.layers[0].kv_heads}}});
  refuse({.queries = {}, .keys = {{0, -1}}});
  feed(story(5));
  EXPECT_TRUE(engine().observation().queries.empty()) << "a refused spec must not be half in force";
}

}  // namespace
}  // namespace modeld
