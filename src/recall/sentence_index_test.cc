#include "recall/sentence_index.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

namespace modeld {
namespace {

std::vector<float> unit_vector(std::mt19937& random, std::size_t dim) {
  std::normal_distribution<float> normal;
  std::vector<float> vector(dim);
  float square = 0.0F;
  for (float& x : vector) {
    x = normal(random);
    square += x * x;
  }
  for (float& x : vector) x /= std::sqrt(square);
  return vector;
}

RC_GTEST_PROP(SentenceIndex, ScoresABlockByItsNearestSentence, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const std::size_t dim = 48;
  SentenceIndex index(static_cast<std::int32_t>(dim));
  std::vector<std::vector<std::vector<float>>> blocks(1 + random() % 10);
  for (auto& block : blocks) {
    for (std::size_t s = random() % 5; s > 0; --s) block.push_back(unit_vector(random, dim));
    index.append(block);
  }
  const std::vector<float> question = unit_vector(random, dim);
  const std::vector<double> scores = index.score(question);
  RC_ASSERT(scores.size() == blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    double best = blocks[b].empty() ? 0.0 : -2.0;
    for (const auto& sentence : blocks[b]) {
      double dot = 0.0;
      for (std::size_t d = 0; d < dim; ++d) dot += double{sentence[d]} * double{question[d]};
      best = std::max(best, dot);
    }
    RC_ASSERT(std::abs(scores[b] - best) < 0.02);  // eight bits
  }
}

RC_GTEST_PROP(SentenceIndex, StoredBlockByBlockItIsTheSameIndex, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  SentenceIndex index(16);
  SentenceIndex loaded(16);
  for (std::size_t block = 0; block < 1 + random() % 6; ++block) {
    std::vector<std::vector<float>> sentences;
    for (std::size_t s = random() % 4; s > 0; --s) sentences.push_back(unit_vector(random, 16));
    index.append(sentences);
    std::vector<std::byte> bytes = index.bytes_of(block);
    RC_ASSERT(loaded.append_bytes(bytes));
    bytes.push_back(std::byte{0});
    RC_ASSERT(!loaded.append_bytes(bytes));
  }
  const std::vector<float> question = unit_vector(random, 16);
  RC_ASSERT(loaded.blocks() == index.blocks());
  RC_ASSERT(loaded.score(question) == index.score(question));
}

}  // namespace
}  // namespace modeld
