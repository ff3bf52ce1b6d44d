#include "recall/rivals.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace modeld {
namespace {

using Engine = std::mt19937;

std::vector<float> normal(Engine& engine, std::size_t count) {
  std::normal_distribution<float> distribution(0.0F, 2.0F);
  std::vector<float> out(count);
  std::generate(out.begin(), out.end(), [&] { return distribution(engine); });
  return out;
}

HeadQueries make_queries(Engine& engine, std::size_t kv_head, std::size_t count, std::size_t dim) {
  return {{0, static_cast<std::int32_t>(kv_head)}, kv_head, normal(engine, count * dim), normal(engine, count)};
}

/// Two KV heads of random keys, cut into blocks of 1 to 40 tokens.
struct Text {
  KeyIndex index;
  std::vector<StreamRange> blocks;

  Text(Engine& engine, std::int32_t dim, std::size_t count) : index({{0, 0}, {1, 0}}, dim) {
    for (std::size_t b = 0; b < count; ++b) {
      const auto tokens = *rc::gen::inRange(1, 41);
      const StreamPos begin{index.tokens()};
      const std::size_t numbers = static_cast<std::size_t>(tokens) * static_cast<std::size_t>(dim);
      index.append(std::vector{normal(engine, numbers), normal(engine, numbers)}, tokens);
      blocks.push_back({begin, StreamPos{index.tokens()}});
    }
  }

  /// q · k / √D of a head's first query with every key of a block.
  [[nodiscard]] std::vector<double> products(const HeadQueries& head, StreamRange block) const {
    const auto dim = static_cast<std::size_t>(index.key_dim());
    const std::vector<float> keys = index.keys(head.kv_head, block);
    std::vector<double> out;
    for (std::size_t row = 0; row < keys.size(); row += dim) {
      double sum = 0.0;
      for (std::size_t d = 0; d < dim; ++d) sum += double{head.queries[d]} * double{keys[row + d]};
      out.push_back(sum / std::sqrt(static_cast<double>(dim)));
    }
    return out;
  }
};

constexpr double kClose = 1e-4;
/// Longer than any block here.
constexpr std::int64_t kWhole = 1000;

RC_GTEST_PROP(Quest, NoKeyOfTheBlockHasALargerProductThanTheBound, (std::uint32_t seed)) {
  Engine engine(seed);
  const auto dim = *rc::gen::element(2, 6, 64);
  const Text text(engine, dim, *rc::gen::inRange<std::size_t>(1, 6));
  const std::vector queries{make_queries(engine, 1, 1, static_cast<std::size_t>(dim))};
  const std::vector<double> bounds = score_quest(text.index, queries, text.blocks, *rc::gen::inRange(1, 50));
  for (std::size_t b = 0; b < bounds.size(); ++b)
    for (const double product : text.products(queries[0], text.blocks[b])) RC_ASSERT(bounds[b] >= product - 1e-9);
}

RC_GTEST_PROP(Quest, SmallerPagesNeverRaiseTheBoundAndPagesOfOneTokenGiveTheBestProduct, (std::uint32_t seed)) {
  Engine engine(seed);
  const Text text(engine, 6, *rc::gen::inRange<std::size_t>(1, 6));
  const std::vector queries{make_queries(engine, 1, 1, 6)};
  const auto page = *rc::gen::inRange(1, 20);
  const std::vector<double> whole = score_quest(text.index, queries, text.blocks, kWhole);
  const std::vector<double> wide = score_quest(text.index, queries, text.blocks, 2 * page);
  const std::vector<double> narrow = score_quest(text.index, queries, text.blocks, page);
  const std::vector<double> exact = score_quest(text.index, queries, text.blocks, 1);
  for (std::size_t b = 0; b < text.blocks.size(); ++b) {
    RC_ASSERT(exact[b] <= narrow[b] + kClose);
    RC_ASSERT(narrow[b] <= wide[b] + kClose);
    RC_ASSERT(wide[b] <= whole[b] + kClose);
    const std::vector<double> products = text.products(queries[0], text.blocks[b]);
    RC_ASSERT(std::fabs(exact[b] - *std::max_element(products.begin(), products.end())) < kClose);
  }
}

RC_GTEST_PROP(Means, TheProductWithTheMeanIsTheMeanOfTheProducts, (std::uint32_t seed)) {
  Engine engine(seed);
  const auto dim = *rc::gen::element(2, 6, 64);
  const Text text(engine, dim, *rc::gen::inRange<std::size_t>(1, 6));
  const std::vector queries{make_queries(engine, 0, 1, static_cast<std::size_t>(dim))};
  const std::vector<double> scores = score_means(text.index, queries, text.blocks);
  for (std::size_t b = 0; b < scores.size(); ++b) {
    const std::vector<double> products = text.products(queries[0], text.blocks[b]);
    double sum = 0.0;
    for (const double product : products) sum += product;
    RC_ASSERT(std::fabs(scores[b] - sum / static_cast<double>(products.size())) < kClose);
  }
}

RC_GTEST_PROP(Rivals, OnABlockOfOneTokenAllSeeTheSameProduct, (std::uint32_t seed)) {
  Engine engine(seed);
  constexpr std::size_t kDim = 16;
  KeyIndex index({{0, 0}}, static_cast<std::int32_t>(kDim));
  index.append(std::array{normal(engine, 3 * kDim)}, 3);
  const std::vector queries{make_queries(engine, 0, 1, kDim)};
  const std::vector<StreamRange> blocks{
      {StreamPos{0}, StreamPos{1}}, {StreamPos{1}, StreamPos{2}}, {StreamPos{2}, StreamPos{3}}};
  const std::vector<double> quest = score_quest(index, queries, blocks, kWhole);
  const std::vector<double> means = score_means(index, queries, blocks);
  const std::vector<double> ours = score_blocks_reference(index, queries, blocks, ScoreRule::sigmoid);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    RC_ASSERT(std::fabs(quest[b] - means[b]) < kClose);
    // Through the sigmoid where it is steep enough to be compared, for it has no inverse at its ends.
    const double expected = 1.0 / (1.0 + std::exp(double{queries[0].local_lse[0]} - quest[b]));
    RC_ASSERT(std::fabs(ours[b] - expected) < kClose);
  }
}

RC_GTEST_PROP(Rivals, HeadsAreAddedAndOfAHeadsQueriesTheBestCountsForQuestAndTheMeanForMeans, (std::uint32_t seed)) {
  Engine engine(seed);
  constexpr std::size_t kDim = 8;
  const Text text(engine, kDim, 4);
  const auto count = *rc::gen::inRange<std::size_t>(1, 6);
  // The second and the third share a KV head.
  const std::vector queries{make_queries(engine, 0, count, kDim), make_queries(engine, 1, count, kDim),
                            make_queries(engine, 1, 2, kDim), HeadQueries{{2, 0}, 0, {}, {}}};
  std::vector<double> quest(text.blocks.size(), 0.0);
  std::vector<double> means(text.blocks.size(), 0.0);
  for (const HeadQueries& head : queries) {
    if (head.local_lse.empty()) continue;
    std::vector<double> best(text.blocks.size(), -std::numeric_limits<double>::infinity());
    for (std::size_t t = 0; t < head.local_lse.size(); ++t) {
      const auto begin = head.queries.begin() + static_cast<std::ptrdiff_t>(t * kDim);
      const std::vector<HeadQueries> one{{head.head, head.kv_head, {begin, begin + kDim}, {head.local_lse[t]}}};
      const std::vector<double> bounds = score_quest(text.index, one, text.blocks, kQuestPage);
      const std::vector<double> products = score_means(text.index, one, text.blocks);
      for (std::size_t b = 0; b < best.size(); ++b) {
        best[b] = std::max(best[b], bounds[b]);
        means[b] += products[b] / static_cast<double>(head.local_lse.size());
      }
    }
    for (std::size_t b = 0; b < best.size(); ++b) quest[b] += best[b];
  }
  const std::vector<double> all_bounds = score_quest(text.index, queries, text.blocks, kQuestPage);
  const std::vector<double> all_means = score_means(text.index, queries, text.blocks);
  for (std::size_t b = 0; b < text.blocks.size(); ++b) {
    RC_ASSERT(std::fabs(all_bounds[b] - quest[b]) < kClose);
    RC_ASSERT(std::fabs(all_means[b] - means[b]) < kClose);
  }
}

TEST(Rivals, WithoutQueriesEveryScoreIsZeroAndWithoutBlocksThereIsNone) {
  Engine engine(1);
  KeyIndex index({{0, 0}}, 4);
  index.append(std::array{normal(engine, 20)}, 5);
  const std::vector<StreamRange> blocks{{StreamPos{0}, StreamPos{3}}, {StreamPos{3}, StreamPos{5}}};
  const std::vector<double> zeros{0.0, 0.0};
  EXPECT_EQ(score_quest(index, {}, blocks, kQuestPage), zeros);
  EXPECT_EQ(score_means(index, {}, blocks), zeros);
  const std::vector some{make_queries(engine, 0, 2, 4)};
  EXPECT_TRUE(score_quest(index, some, {}, kQuestPage).empty());
  EXPECT_TRUE(score_means(index, some, {}).empty());
}

TEST(Rivals, ABlockOfMixedKeysHasALargeBoundAndASmallMean) {
  KeyIndex index({{0, 0}}, 2);
  // Keys (4, −4) and (−4, 4) on one side, (3, 3) twice on the other.
  index.append(std::vector<std::vector<float>>{{4.0F, -4.0F, -4.0F, 4.0F, 3.0F, 3.0F, 3.0F, 3.0F}}, 4);
  const float root = std::sqrt(2.0F);
  const std::vector<HeadQueries> queries{{{0, 0}, 0, {root, root}, {0.0F}}};
  const std::vector<StreamRange> blocks{{StreamPos{0}, StreamPos{2}}, {StreamPos{2}, StreamPos{4}}};
  const std::vector<double> quest = score_quest(index, queries, blocks, kWhole);
  EXPECT_NEAR(quest[0], 8.0, 0.01);
  EXPECT_NEAR(quest[1], 6.0, 0.01);
  const std::vector<double> means = score_means(index, queries, blocks);
  EXPECT_NEAR(means[0], 0.0, 0.01);
  EXPECT_NEAR(means[1], 6.0, 0.01);
}

}  // namespace
}  // namespace modeld
