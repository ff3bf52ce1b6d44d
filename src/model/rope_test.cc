#include "model/rope.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <complex>
#include <numeric>
#include <random>

namespace modeld {
namespace {

std::vector<float> random_vector(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> vector(size);
  for (float& x : vector) x = normal(random);
  return vector;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// RoFormer, eq. 34, word for word: each pair is a complex number that is multiplied by exp(i·m·θ).
std::vector<float> reference(const std::vector<float>& vector, const Rope& rope, double position) {
  std::vector<float> out = vector;
  const auto half = static_cast<std::size_t>(rope.dims) / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const std::size_t a = rope.style == RopeStyle::norm ? 2 * i : i;
    const std::size_t b = rope.style == RopeStyle::norm ? 2 * i + 1 : i + half;
    double theta = 1.0 / std::pow(rope.freq_base, static_cast<double>(2 * i) / rope.dims);
    theta *= rope.freq_scale;
    if (!rope.freq_factors.empty()) theta /= static_cast<double>(rope.freq_factors[i]);
    const std::complex<double> turned =
        std::complex<double>(vector[a], vector[b]) * std::exp(std::complex<double>(0.0, position * theta));
    out[a] = static_cast<float>(turned.real());
    out[b] = static_cast<float>(turned.imag());
  }
  return out;
}

Rope any_rope() {
  Rope rope;
  rope.style = *rc::gen::element(RopeStyle::norm, RopeStyle::neox);
  rope.dims = *rc::gen::element(2, 32, 64);
  rope.freq_base = *rc::gen::element(10000.0, 100000.0, 1e6);
  rope.freq_scale = *rc::gen::element(1.0, 0.5, 0.125);
  if (*rc::gen::arbitrary<bool>()) {
    for (int i = 0; i < rope.dims / 2; ++i) rope.freq_factors.push_back(1.0F + static_cast<float>(i) * 0.25F);
  }
  return rope;
}

constexpr std::size_t kHead = 80;  // longer than any rope: the rest must pass through

RC_GTEST_PROP(Rope, EqualsTheComplexProduct, ()) {
  const Rope rope = any_rope();
  const int position = *rc::gen::inRange(-9000, 40000);
  std::vector<float> vector = random_vector(kHead, *rc::gen::arbitrary<std::uint32_t>());
  const std::vector<float> expected = reference(vector, rope, position);
  rotate(vector, rope, rope_frequencies(rope), position);
  for (std::size_t i = 0; i < kHead; ++i) RC_ASSERT(std::abs(vector[i] - expected[i]) <= 1e-5F);
}

RC_GTEST_PROP(Rope, TurningBackRestoresTheVector, ()) {
  const Rope rope = any_rope();
  const int position = *rc::gen::inRange(0, 200000);
  const std::vector<float> original = random_vector(kHead, *rc::gen::arbitrary<std::uint32_t>());
  std::vector<float> vector = original;
  const auto frequencies = rope_frequencies(rope);
  rotate(vector, rope, frequencies, position);
  rotate(vector, rope, frequencies, -position);
  for (std::size_t i = 0; i < kHead; ++i) RC_ASSERT(std::abs(vector[i] - original[i]) <= 2e-6F);
}

RC_GTEST_PROP(Rope, ScoresDependOnTheDistanceOnly, ()) {
  const Rope rope = any_rope();
  const auto frequencies = rope_frequencies(rope);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const int distance = *rc::gen::inRange(0, 4000);
  const auto score = [&](int key_at) {
    std::vector<float> query = random_vector(kHead, seed);
    std::vector<float> key = random_vector(kHead, seed + 1);
    rotate(query, rope, frequencies, key_at + distance);
    rotate(key, rope, frequencies, key_at);
    return dot(query, key);
  };
  const double here = score(0);
  const double there = score(*rc::gen::inRange(1, 30000));
  RC_ASSERT(std::abs(here - there) <= 1e-4);
}

TEST(Rope, ScoresDoDependOnTheDistance) {
  Rope rope{RopeStyle::neox, 64, 10000.0, 1.0, {}};
  const auto frequencies = rope_frequencies(rope);
  const std::vector<float> key = random_vector(64, 1);
  std::vector<float> query = random_vector(64, 2);
  const double before = dot(query, key);
  rotate(query, rope, frequencies, 100);
  EXPECT_GT(std::abs(dot(query, key) - before), 0.1);
}

TEST(Rope, OnlyTheFirstDimensionsTurn) {
  const Rope rope{RopeStyle::neox, 32, 10000.0, 1.0, {}};
  const std::vector<float> original = random_vector(64, 3);
  std::vector<float> vector = original;
  rotate(vector, rope, rope_frequencies(rope), 17);
  EXPECT_NE(vector[0], original[0]);
  EXPECT_NE(vector[31], original[31]);
  for (std::size_t i = 32; i < 64; ++i) EXPECT_EQ(vector[i], original[i]) << i;
}

TEST(Rope, TheTwoStylesPairOtherDimensions) {
  // A quarter turn of the first pair, whose frequency is 1: (1, 0) becomes (0, 1).
  const double quarter = std::acos(0.0);
  const auto turned = [&](RopeStyle style) {
    const Rope rope{style, 4, 10000.0, 1.0, {}};
    std::vector<float> vector = {1.0F, 0.0F, 0.0F, 0.0F};
    rotate(vector, rope, rope_frequencies(rope), quarter);
    return vector;
  };
  EXPECT_NEAR(turned(RopeStyle::norm)[1], 1.0F, 1e-6F);
  EXPECT_NEAR(turned(RopeStyle::neox)[2], 1.0F, 1e-6F);
}

TEST(Rope, WithoutAStyleNothingTurns) {
  const Rope rope{RopeStyle::none, 64, 10000.0, 1.0, {}};
  EXPECT_TRUE(rope_frequencies(rope).empty());
  const std::vector<float> original = random_vector(64, 4);
  std::vector<float> vector = original;
  rotate(vector, rope, {}, 1000);
  EXPECT_EQ(vector, original);
}

}  // namespace
}  // namespace modeld
