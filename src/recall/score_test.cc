#include "recall/score.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace modeld {
namespace {

using Engine = std::mt19937;

std::vector<float> normal(Engine& engine, std::size_t count, float spread = 1.0F) {
  std::normal_distribution<float> distribution(0.0F, spread);
  std::vector<float> out(count);
  std::generate(out.begin(), out.end(), [&] { return distribution(engine); });
  return out;
}

KeyIndex make_index(Engine& engine, std::size_t kv_heads, std::int32_t dim, std::int32_t tokens) {
  std::vector<KvHeadRef> heads;
  std::vector<std::vector<float>> keys;
  for (std::size_t h = 0; h < kv_heads; ++h) {
    heads.push_back({static_cast<std::int32_t>(h), 0});
    keys.push_back(normal(engine, static_cast<std::size_t>(tokens) * static_cast<std::size_t>(dim), 2.0F));
  }
  KeyIndex index(heads, dim);
  index.append(keys, tokens);
  return index;
}

HeadQueries make_queries(Engine& engine, std::size_t kv_head, std::size_t count, std::size_t dim, float lse) {
  HeadQueries queries{{0, static_cast<std::int32_t>(kv_head)}, kv_head, normal(engine, count * dim, 2.0F), {}};
  queries.local_lse = normal(engine, count);
  for (float& x : queries.local_lse) x += lse;
  return queries;
}

/// How far rounding the queries to 16 bits (and the sums to floats) can move a scaled score of this head.
double score_error(const KeyIndex& index, const HeadQueries& head) {
  const auto dim = static_cast<std::size_t>(index.key_dim());
  const std::vector<float> keys = index.keys(head.kv_head, {StreamPos{0}, StreamPos{index.tokens()}});
  double key_sum = 0.0;
  for (std::size_t row = 0; row < keys.size(); row += dim) {
    double sum = 0.0;
    for (std::size_t d = 0; d < dim; ++d) sum += std::fabs(double{keys[row + d]});
    key_sum = std::max(key_sum, sum);
  }
  double largest = 0.0;
  for (const float q : head.queries) largest = std::max(largest, std::fabs(double{q}));
  const double scale = key_sum * largest / std::sqrt(static_cast<double>(dim));
  return scale * (0.5 / 32767.0 + 1e-6);
}

void expect_close(const KeyIndex& index, std::span<const HeadQueries> queries, std::span<const StreamRange> blocks,
                  ScoreRule rule) {
  const auto fast = score_blocks(index, queries, blocks, rule);
  const auto plain = score_blocks_reference(index, queries, blocks, rule);
  double tolerance = 1e-9;
  // A sigmoid is nowhere steeper than 1/4; an exponential of at most 1 moves with its argument and its normalisation.
  for (const HeadQueries& head : queries)
    tolerance += score_error(index, head) * (rule == ScoreRule::sigmoid ? 0.25 : 2.0);
  RC_ASSERT(fast.size() == blocks.size());
  RC_ASSERT(plain.size() == blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!(std::fabs(fast[b] - plain[b]) <= tolerance)) {
      RC_FAIL("block " + std::to_string(b) + ": " + std::to_string(fast[b]) + " instead of " +
              std::to_string(plain[b]));
    }
  }
}

/// Disjoint ranges with gaps, empty ones among them, that keep to no border.
std::vector<StreamRange> random_blocks(std::int32_t tokens) {
  std::vector<std::int32_t> cuts = *rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange(0, tokens + 1));
  cuts.push_back(0);
  cuts.push_back(tokens);
  std::sort(cuts.begin(), cuts.end());
  std::vector<StreamRange> blocks;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (*rc::gen::inRange(0, 4) > 0) blocks.push_back({StreamPos{cuts[i]}, StreamPos{cuts[i + 1]}});
  }
  return blocks;
}

class EveryTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  EveryTarget() { hwy::SetSupportedTargetsForTest(GetParam()); }
  ~EveryTarget() override { hwy::SetSupportedTargetsForTest(0); }
};
INSTANTIATE_TEST_SUITE_P(ScoreBlocks, EveryTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& param) { return std::string(hwy::TargetName(param.param)); });

TEST_P(EveryTarget, EqualsThePlainVersion) {
  const bool holds = rc::check([] {
    const auto dim = *rc::gen::element(2, 6, 64, 80, 128, 256, 512);
    const auto tokens = *rc::gen::inRange(1, 420);
    const auto kv_heads = *rc::gen::inRange<std::size_t>(1, 4);
    Engine engine(*rc::gen::arbitrary<std::uint32_t>());
    const KeyIndex index = make_index(engine, kv_heads, dim, tokens);
    std::vector<HeadQueries> queries;
    for (auto heads = *rc::gen::inRange(0, 5); heads > 0; --heads) {
      queries.push_back(make_queries(engine, *rc::gen::inRange<std::size_t>(0, kv_heads),
                                     *rc::gen::inRange<std::size_t>(0, 14), static_cast<std::size_t>(dim),
                                     static_cast<float>(*rc::gen::inRange(-5, 15))));
    }
    const auto blocks = random_blocks(tokens);
    expect_close(index, queries, blocks, ScoreRule::sigmoid);
    expect_close(index, queries, blocks, ScoreRule::full);
  });
  EXPECT_TRUE(holds);
}

TEST_P(EveryTarget, TheLargestPossibleSumDoesNotOverflow) {
  for (const std::int32_t dim : {64, 512, 1024}) {
    for (const float sign : {1.0F, -1.0F}) {
      KeyIndex index({{0, 0}}, dim);
      const auto width = static_cast<std::size_t>(dim);
      index.append(std::vector<std::vector<float>>{std::vector<float>(width * 3, sign)}, 3);
      // Every key and every query is at the end of its range; the local sum keeps the sigmoid where it is steep.
      const float s = sign * std::sqrt(static_cast<float>(dim));
      const std::vector<HeadQueries> queries{{{0, 0}, 0, std::vector<float>(width, 1.0F), {s}}};
      const std::vector<StreamRange> blocks{{StreamPos{0}, StreamPos{3}}};
      EXPECT_NEAR(score_blocks(index, queries, blocks, ScoreRule::sigmoid)[0], 0.5, 0.01) << dim;
      EXPECT_NEAR(score_blocks(index, queries, blocks, ScoreRule::full)[0], 0.25, 0.01) << dim;
    }
  }
}

TEST_P(EveryTarget, ScoresFarApartKeepTheirSum) {
  // One key towers over the others by more than a float's exponential can span, first and last.
  for (const std::size_t tower : {std::size_t{0}, std::size_t{299}}) {
    KeyIndex index({{0, 0}}, 2);
    std::vector<float> keys(600, -100.0F);
    keys[2 * tower] = keys[2 * tower + 1] = 100.0F;
    index.append(std::vector<std::vector<float>>{keys}, 300);
    const std::vector<HeadQueries> queries{{{0, 0}, 0, {2.0F, 2.0F}, {0.0F}}};
    const std::vector<StreamRange> blocks{{StreamPos{0}, StreamPos{150}}, {StreamPos{150}, StreamPos{300}}};
    const auto scores = score_blocks(index, queries, blocks, ScoreRule::full);
    EXPECT_NEAR(scores[tower / 150], 1.0, 1e-4);
    EXPECT_NEAR(scores[1 - tower / 150], 0.0, 1e-9);
  }
}

TEST_P(EveryTarget, LogSumExpEqualsThePlainSum) {
  const bool holds = rc::check([] {
    const auto dim = *rc::gen::inRange<std::size_t>(1, 300);
    const auto rows = *rc::gen::inRange<std::size_t>(1, 100);
    const auto visible = *rc::gen::inRange<std::size_t>(1, rows + 1);
    Engine engine(*rc::gen::arbitrary<std::uint32_t>());
    const auto spread = *rc::gen::element(0.1F, 1.0F, 10.0F);
    const auto query = normal(engine, dim, spread);
    const auto keys = normal(engine, rows * dim, spread);
    long double sum = 0.0L;
    for (std::size_t row = 0; row < visible; ++row) {
      long double dot = 0.0L;
      for (std::size_t d = 0; d < dim; ++d)
        dot += static_cast<long double>(query[d]) * static_cast<long double>(keys[row * dim + d]);
      sum += std::exp(dot / std::sqrt(static_cast<long double>(dim)));
    }
    const auto expected = static_cast<double>(std::log(sum));
    RC_ASSERT(std::fabs(log_sum_exp(query, keys, visible) - expected) <=
              1e-5 * (1.0 + std::fabs(expected) + double{spread * spread}));
  });
  EXPECT_TRUE(holds);
}

TEST(LogSumExp, IsStableAtBothEnds) {
  const std::vector<float> query{1.0F};
  EXPECT_NEAR(log_sum_exp(query, std::vector{5000.0F, 5000.0F}, 2), 5000.0 + std::log(2.0), 1e-2);
  EXPECT_NEAR(log_sum_exp(query, std::vector{-5000.0F, -5000.0F}, 2), -5000.0 + std::log(2.0), 1e-2);
  EXPECT_NEAR(log_sum_exp(query, std::vector{-5000.0F, 5000.0F}, 2), 5000.0, 1e-2);
  EXPECT_NEAR(log_sum_exp(query, std::vector{1.0F, 900.0F}, 1), 1.0, 1e-5);
  EXPECT_EQ(log_sum_exp(query, std::vector{1.0F}, 0), -std::numeric_limits<double>::infinity());
}

TEST(ScoreBlocks, ABlockIsAsGoodAsItsBestTokenForTheBestQuery) {
  // Two tokens; query 0 meets token 1, query 1 meets nothing.
  KeyIndex index({{3, 1}}, 2);
  index.append(std::vector<std::vector<float>>{{1.0F, 0.0F, 0.0F, 1.0F, 1.0F, 0.0F}}, 3);
  const float root = std::sqrt(2.0F);
  const std::vector<HeadQueries> queries{{{3, 2}, 0, {0.0F, 4.0F * root, -root, -root}, {1.0F, 0.0F}}};
  const std::vector<StreamRange> blocks{{StreamPos{0}, StreamPos{1}}, {StreamPos{1}, StreamPos{3}}};
  const auto scores = score_blocks(index, queries, blocks, ScoreRule::sigmoid);
  EXPECT_NEAR(scores[0], 1.0 / (1.0 + std::exp(1.0)), 1e-3);
  EXPECT_NEAR(scores[1], 1.0 / (1.0 + std::exp(-3.0)), 1e-3);
}

TEST(ScoreBlocks, WithoutQueriesOrTokensEveryScoreIsZero) {
  Engine engine(1);
  const KeyIndex index = make_index(engine, 1, 8, 40);
  const std::vector<StreamRange> blocks{{StreamPos{0}, StreamPos{16}}, {StreamPos{20}, StreamPos{20}}};
  for (const ScoreRule rule : {ScoreRule::sigmoid, ScoreRule::full}) {
    EXPECT_EQ(score_blocks(index, {}, blocks, rule), (std::vector<double>{0.0, 0.0}));
    const std::vector<HeadQueries> none{{{0, 0}, 0, {}, {}}};
    EXPECT_EQ(score_blocks(index, none, blocks, rule), (std::vector<double>{0.0, 0.0}));
    const std::vector<HeadQueries> one{make_queries(engine, 0, 3, 8, 0.0F)};
    EXPECT_EQ(score_blocks(index, one, blocks, rule)[1], 0.0);
    EXPECT_GT(score_blocks(index, one, blocks, rule)[0], 0.0);
    EXPECT_TRUE(score_blocks(index, one, {}, rule).empty());
  }
}

RC_GTEST_PROP(ScoreBlocks, SigmoidScoresDoNotDependOnTheOtherCandidates, ()) {
  const auto tokens = *rc::gen::inRange(1, 300);
  Engine engine(*rc::gen::arbitrary<std::uint32_t>());
  const KeyIndex index = make_index(engine, 1, 16, tokens);
  const std::vector<HeadQueries> queries{make_queries(engine, 0, 5, 16, 2.0F)};
  const auto blocks = random_blocks(tokens);
  const auto together = score_blocks(index, queries, blocks, ScoreRule::sigmoid);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    RC_ASSERT(score_blocks(index, queries, std::span(blocks).subspan(b, 1), ScoreRule::sigmoid)[0] == together[b]);
  }
}

RC_GTEST_PROP(ScoreByHead, MoreQueryTokensGiveTheLargerScoreHeadByHead, (std::uint32_t seed)) {
  const auto tokens = *rc::gen::inRange(1, 300);
  Engine engine(seed);
  const KeyIndex index = make_index(engine, 2, 16, tokens);
  const auto blocks = random_blocks(tokens);
  const std::vector<HeadQueries> first{make_queries(engine, 0, 3, 16, 2.0F), make_queries(engine, 1, 2, 16, 2.0F)};
  const std::vector<HeadQueries> more{make_queries(engine, 0, 4, 16, 2.0F), make_queries(engine, 1, 0, 16, 2.0F)};
  std::vector<HeadQueries> both = first;
  for (std::size_t h = 0; h < both.size(); ++h) {
    both[h].queries.insert(both[h].queries.end(), more[h].queries.begin(), more[h].queries.end());
    both[h].local_lse.insert(both[h].local_lse.end(), more[h].local_lse.begin(), more[h].local_lse.end());
  }
  for (const ScoreRule rule : {ScoreRule::sigmoid, ScoreRule::full}) {
    const auto a = score_by_head(index, first, blocks, rule);
    const auto b = score_by_head(index, more, blocks, rule);
    const auto together = score_by_head(index, both, blocks, rule);
    RC_ASSERT(score_blocks(index, both, blocks, rule) == sum_of_heads(together));
    for (std::size_t h = 0; h < both.size(); ++h)
      for (std::size_t block = 0; block < blocks.size(); ++block)
        RC_ASSERT(together[h][block] == std::max(a[h][block], b[h][block]));
  }
}

}  // namespace
}  // namespace modeld
