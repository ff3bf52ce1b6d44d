#include "recall/key_index.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/half.h"

namespace modeld {
namespace {

std::vector<KvHeadRef> heads(std::size_t count) {
  std::vector<KvHeadRef> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back({static_cast<std::int32_t>(i), 0});
  return out;
}

/// Keys by head, one row a token.
struct Rows {
  std::size_t dim;
  std::vector<std::vector<float>> by_head;

  static Rows random(std::size_t head_count, std::size_t dim, std::size_t tokens, std::uint32_t seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal(0.0F, 2.0F);
    Rows rows{dim, std::vector<std::vector<float>>(head_count, std::vector<float>(tokens * dim))};
    for (auto& head : rows.by_head) std::generate(head.begin(), head.end(), [&] { return normal(engine); });
    return rows;
  }
  [[nodiscard]] Rows slice(std::size_t begin, std::size_t end) const {
    Rows out{dim, {}};
    for (const auto& head : by_head) {
      out.by_head.emplace_back(head.begin() + static_cast<std::ptrdiff_t>(begin * dim),
                               head.begin() + static_cast<std::ptrdiff_t>(end * dim));
    }
    return out;
  }
  [[nodiscard]] std::size_t tokens() const { return by_head.front().size() / dim; }
};

void append(KeyIndex& index, const Rows& rows) { index.append(rows.by_head, static_cast<std::int32_t>(rows.tokens())); }

StreamRange range(std::int64_t begin, std::int64_t end) { return {StreamPos{begin}, StreamPos{end}}; }

/// Everything that a scorer can see.
void expect_same_content(const KeyIndex& a, const KeyIndex& b) {
  RC_ASSERT(a.tokens() == b.tokens());
  RC_ASSERT(a.bytes() == b.bytes());
  for (std::size_t head = 0; head < a.kv_heads().size(); ++head) {
    for (std::int64_t t = 0; t * KeyIndex::kTile < a.tokens(); ++t) {
      RC_ASSERT(std::equal(a.tile(head, t), a.tile(head, t) + std::ptrdiff_t{KeyIndex::kTile} * a.key_dim(),
                           b.tile(head, t)));
      RC_ASSERT(std::equal(a.tile_scales(head, t), a.tile_scales(head, t) + KeyIndex::kTile, b.tile_scales(head, t)));
    }
  }
}

RC_GTEST_PROP(KeyIndex, ACopyOfARangeEqualsAppendingItsKeysAgain, ()) {
  const Rows rows = Rows::random(2, 8, *rc::gen::inRange<std::size_t>(1, 900), *rc::gen::arbitrary<std::uint32_t>());
  const auto begin = *rc::gen::inRange<std::size_t>(0, rows.tokens());
  const auto end = *rc::gen::inRange<std::size_t>(begin, rows.tokens() + 1);
  KeyIndex copied(heads(2), 8);
  append(copied, rows);
  const StreamRange part = range(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
  copied.append_copy(copied, part);
  KeyIndex again(heads(2), 8);
  append(again, rows);
  append(again, rows.slice(begin, end));
  expect_same_content(copied, again);
  // The same from another index.
  KeyIndex other(heads(2), 8);
  append(other, rows.slice(0, end / 2));
  other.append_copy(copied, part);
  KeyIndex expected(heads(2), 8);
  append(expected, rows.slice(0, end / 2));
  append(expected, rows.slice(begin, end));
  expect_same_content(other, expected);
}

RC_GTEST_PROP(KeyIndex, KeysComeBackWithinHalfAStepOfTheirOwnScale, ()) {
  const auto head_count = *rc::gen::inRange<std::size_t>(1, 4);
  const auto dim = 2 * *rc::gen::inRange<std::size_t>(1, 40);
  const auto tokens = *rc::gen::inRange<std::size_t>(1, 100);
  const Rows rows = Rows::random(head_count, dim, tokens, *rc::gen::arbitrary<std::uint32_t>());
  KeyIndex index(heads(head_count), static_cast<std::int32_t>(dim));
  append(index, rows);
  for (std::size_t head = 0; head < head_count; ++head) {
    const std::vector<float> back = index.keys(head, range(0, index.tokens()));
    RC_ASSERT(back.size() == rows.by_head[head].size());
    for (std::size_t i = 0; i < tokens; ++i) {
      const float* key = rows.by_head[head].data() + i * dim;
      const float largest =
          std::fabs(*std::max_element(key, key + dim, [](float x, float y) { return std::fabs(x) < std::fabs(y); }));
      for (std::size_t d = 0; d < dim; ++d) {
        RC_ASSERT(std::fabs(back[i * dim + d] - key[d]) <= largest / 127.0F * 0.502F);
      }
    }
  }
}

RC_GTEST_PROP(KeyIndex, AppendInPiecesEqualsOneAppend, ()) {
  const auto dim = 2 * *rc::gen::inRange<std::size_t>(1, 9);
  const Rows rows = Rows::random(2, dim, 1700, *rc::gen::arbitrary<std::uint32_t>());
  KeyIndex grown(heads(2), static_cast<std::int32_t>(dim));
  const auto steps = *rc::gen::inRange(1, 12);
  for (int step = 0; step < steps; ++step) {
    const auto held = static_cast<std::size_t>(grown.tokens());
    append(grown, rows.slice(held, std::min(rows.tokens(), held + *rc::gen::inRange<std::size_t>(0, 700))));
  }
  KeyIndex fresh(heads(2), static_cast<std::int32_t>(dim));
  append(fresh, rows.slice(0, static_cast<std::size_t>(grown.tokens())));
  expect_same_content(grown, fresh);
}

TEST(KeyIndex, LanesPastTheEndAreZero) {
  KeyIndex index(heads(1), 4);
  append(index, Rows::random(1, 4, 21, 1));
  for (int lane = 5; lane < KeyIndex::kTile; ++lane) {
    EXPECT_EQ(index.tile_scales(0, 1)[lane], 0);
    for (int d = 0; d < 4; ++d) EXPECT_EQ(index.tile(0, 1)[(d / 2) * 32 + lane * 2 + d % 2], 0);
  }
  EXPECT_NE(index.tile_scales(0, 1)[4], 0);
}

TEST(KeyIndex, CountsWholeTilesOfKeysAndScales) {
  KeyIndex index(heads(9), 64);
  EXPECT_EQ(index.bytes_per_token(), 594);
  EXPECT_EQ(index.bytes(), 0);
  append(index, Rows::random(9, 64, 17, 1));
  EXPECT_EQ(index.bytes(), 32 * 594);
}

TEST(KeyIndex, TakesKeysOfAnySizeAndBrokenNumbers) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  KeyIndex index(heads(1), 4);
  const std::vector<std::vector<float>> keys = {
      {0, 0, 0, 0, 1e-30F, 0, 0, 0, 1e-6F, -1e-6F, 0, 0, kNan, 1, -2, kInfinity, 3e38F, -3e38F, 1, 0}};
  index.append(keys, 5);
  const std::vector<float> back = index.keys(0, range(0, 5));
  for (const float value : back) EXPECT_TRUE(std::isfinite(value));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(back[i], 0.0F);
  EXPECT_NEAR(back[8], 1e-6F, 1e-6F);  // a scale near the smallest f16 keeps the sign and the rough size
  EXPECT_EQ(back[12], 0.0F);
  EXPECT_NEAR(back[13], 1.0F, 2.0F / 127.0F);
  EXPECT_NEAR(back[14], -2.0F, 2.0F / 127.0F);
  EXPECT_NEAR(back[15], 2.0F, 2.0F / 127.0F);
}

RC_GTEST_PROP(KeyIndexProperty, StoredAsPiecesAndTailAndLoadedItIsTheSameIndex, ()) {
  constexpr std::size_t kHeads = 3;
  constexpr std::int32_t kDim = 8;
  const auto first = *rc::gen::inRange<std::size_t>(0, 1300);
  const auto more = *rc::gen::inRange<std::size_t>(0, 700);
  KeyIndex index(heads(kHeads), kDim);
  const auto add = [](KeyIndex& to, std::size_t count, std::uint32_t seed) {
    const Rows rows = Rows::random(kHeads, kDim, count, seed);
    to.append(rows.by_head, static_cast<std::int32_t>(count));
  };
  add(index, first, 1);
  // Full pieces are written once, while the index grows: what is written later is only what is new.
  std::vector<std::byte> stored = index.pieces(0);
  add(index, more, 2);
  const std::vector<std::byte> rest = index.pieces(static_cast<std::int64_t>(first) / KeyIndex::kPieceTokens);
  stored.insert(stored.end(), rest.begin(), rest.end());
  RC_ASSERT(stored.size() % static_cast<std::size_t>(index.piece_bytes()) == 0U);
  const std::vector<std::byte> tail = index.tail();
  stored.insert(stored.end(), tail.begin(), tail.end());

  KeyIndex loaded(heads(kHeads), kDim);
  add(loaded, 5, 3);
  RC_ASSERT(loaded.load(stored, index.tokens()));
  RC_ASSERT(loaded.tokens() == index.tokens());
  const StreamRange all{StreamPos(0), StreamPos(index.tokens())};
  for (std::size_t head = 0; head < kHeads; ++head) RC_ASSERT(loaded.keys(head, all) == index.keys(head, all));
  // It goes on like the one that was stored.
  add(index, 40, 4);
  add(loaded, 40, 4);
  const StreamRange longer{StreamPos(0), StreamPos(index.tokens())};
  for (std::size_t head = 0; head < kHeads; ++head) RC_ASSERT(loaded.keys(head, longer) == index.keys(head, longer));
}

TEST(KeyIndex, BytesOfAnotherLengthAreRefusedAndChangeNothing) {
  KeyIndex index(heads(1), 4);
  const Rows rows = Rows::random(1, 4, 20, 1);
  index.append(rows.by_head, 20);
  const std::vector<std::byte> tail = index.tail();
  EXPECT_FALSE(index.load(std::span(tail).first(tail.size() - 1), 20));
  EXPECT_FALSE(index.load(tail, 40));
  EXPECT_FALSE(index.load(tail, -1));
  EXPECT_EQ(index.tokens(), 20);
}

}  // namespace
}  // namespace modeld
