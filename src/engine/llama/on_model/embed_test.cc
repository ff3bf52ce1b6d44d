#include "engine/llama/embed.h"

#include <gtest/gtest.h>

#include <numeric>

#include "test_model.h"

namespace modeld::on_model {
namespace {

std::filesystem::path minilm() { return model_path("all-MiniLM-L6-v2.F32.gguf"); }

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

TEST(LlamaEmbedder, TextsOfLikeMeaningAreNearAndAloneAsTogether) {
  auto embedder = open_llama_embedder(minilm(), 1);
  ASSERT_TRUE(embedder) << to_text(embedder.error());
  EXPECT_EQ((*embedder)->dim(), 384);
  EXPECT_EQ((*embedder)->name(), "all-MiniLM-L6-v2");
  const std::vector<std::string> texts = {"In which place could someone find the musical instrument?",
                                          "The old violin is kept behind the bakery.",
                                          "And the waters prevailed upon the earth an hundred and fifty days.",
                                          "Five loaves of bread were sold on Monday."};
  const auto together = (*embedder)->embed(texts);
  ASSERT_TRUE(together) << to_text(together.error());
  ASSERT_EQ(together->size(), texts.size());
  // What another implementation gives for the same weights.
  EXPECT_NEAR(dot((*together)[0], (*together)[1]), 0.4211, 0.002);
  EXPECT_NEAR(dot((*together)[0], (*together)[2]), 0.0786, 0.002);
  EXPECT_NEAR(dot((*together)[0], (*together)[3]), 0.0436, 0.002);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_NEAR(dot((*together)[i], (*together)[i]), 1.0, 1e-5);
    const auto alone = (*embedder)->embed(std::span(texts).subspan(i, 1));
    ASSERT_TRUE(alone);
    EXPECT_GT(dot((*together)[i], alone->front()), 0.9999);
  }
  EXPECT_TRUE((*embedder)->embed({})->empty());
}

TEST(LlamaEmbedder, ManyAndLongTextsEachGetOneVector) {
  auto embedder = open_llama_embedder(minilm(), 1);
  ASSERT_TRUE(embedder);
  std::vector<std::string> texts;
  for (int i = 0; i < 70; ++i) texts.push_back("Room " + std::to_string(i) + " has a blue door.");
  texts.emplace_back();
  std::string longer;
  for (int i = 0; i < 2000; ++i) longer += "word" + std::to_string(i) + " ";
  texts.push_back(longer);
  const auto vectors = (*embedder)->embed(texts);
  ASSERT_TRUE(vectors) << to_text(vectors.error());
  EXPECT_EQ(vectors->size(), texts.size());
  const auto last_room = (*embedder)->embed(std::span(texts).subspan(69, 1));
  EXPECT_GT(dot((*vectors)[69], last_room->front()), 0.9999);
}

TEST(LlamaEmbedder, RefusesWhatIsNoEmbedder) {
  EXPECT_EQ(open_llama_embedder(model_folder() / "none.gguf", 1).error().code, ErrorCode::file_missing);
  EXPECT_EQ(open_llama_embedder(smollm2(), 1).error().code, ErrorCode::unsupported_operation);
}

}  // namespace
}  // namespace modeld::on_model
