#include "model/geometry.h"

#include <gtest/gtest.h>

namespace modeld {
namespace {

ModelGeometry uniform(std::size_t layers, std::int32_t heads, std::int32_t kv_heads, std::int32_t dim) {
  ModelGeometry geometry;
  geometry.layers.assign(layers, LayerGeometry{heads, kv_heads, dim, dim, 0, {}});
  return geometry;
}

const ModelGeometry kSmolLm2 = uniform(30, 9, 3, 64);

TEST(KvType, NamesGoBothWays) {
  for (const KvType type : kKvTypes) EXPECT_EQ(kv_type_from(to_text(type)), type);
  EXPECT_EQ(kv_type_from("q8_0"), KvType::q8_0);
  EXPECT_FALSE(kv_type_from("q5_1"));
  EXPECT_FALSE(kv_type_from(""));
}

TEST(KvType, QuantisedNumbersComeInGroupsOf32) {
  EXPECT_EQ(kv_bytes(KvType::f16, 1), 2);
  EXPECT_EQ(kv_bytes(KvType::q8_0, 32), 34);
  EXPECT_EQ(kv_bytes(KvType::q4_0, 64), 36);
  EXPECT_EQ(kv_bytes(KvType::q4_0, 0), 0);
  EXPECT_DEATH(kv_bytes(KvType::q8_0, 33), "broken invariant");
}

TEST(Geometry, KvBytesOfATokenAreThoseMeasuredForSmolLm2) {
  EXPECT_EQ(kSmolLm2.kv_bytes_per_token(KvType::f16), 23040);
  EXPECT_EQ(kSmolLm2.kv_bytes_per_token(KvType::q8_0), 12240);
  EXPECT_EQ(kSmolLm2.kv_bytes_per_token(KvType::q4_0), 6480);
}

TEST(Geometry, KeysAndValuesMayDifferAndWindowedLayersCountLikeOthers) {
  ModelGeometry geometry = uniform(2, 4, 1, 64);
  geometry.layers[1].key_dim = 128;
  geometry.layers[1].window = 512;
  EXPECT_EQ(geometry.kv_bytes_per_token(KvType::f16), 2 * (64 + 64) + 2 * (128 + 64));
}

TEST(Geometry, AHeadThatIsNoWholeGroupIsNotQuantised) {
  // The rows of both heads together would be 160 = 5 · 32 numbers; one head's 80 are not.
  const ModelGeometry geometry = uniform(4, 8, 2, 80);
  EXPECT_TRUE(geometry.supports(KvType::f16));
  EXPECT_FALSE(geometry.supports(KvType::q8_0));
  EXPECT_EQ(geometry.kv_bytes_per_token(KvType::q8_0), 0);
  EXPECT_EQ(geometry.kv_bytes_per_token(KvType::f16), 4 * 2 * 2 * 80 * 2);
}

TEST(Geometry, WithoutLayersOrHeadsNothingIsSupported) {
  EXPECT_FALSE(ModelGeometry{}.supports(KvType::f16));
  EXPECT_FALSE(uniform(1, 4, 0, 64).supports(KvType::f16));
}

TEST(Geometry, ConsecutiveQueryHeadsShareAKvHead) {
  EXPECT_EQ(kv_head_of(kSmolLm2, {17, 0}), (KvHeadRef{17, 0}));
  EXPECT_EQ(kv_head_of(kSmolLm2, {17, 2}), (KvHeadRef{17, 0}));
  EXPECT_EQ(kv_head_of(kSmolLm2, {17, 3}), (KvHeadRef{17, 1}));
  EXPECT_EQ(kv_head_of(kSmolLm2, {0, 8}), (KvHeadRef{0, 2}));
  EXPECT_DEATH(kv_head_of(kSmolLm2, {0, 9}), "broken invariant");
  EXPECT_DEATH(kv_head_of(kSmolLm2, {30, 0}), "broken invariant");
}

}  // namespace
}  // namespace modeld
