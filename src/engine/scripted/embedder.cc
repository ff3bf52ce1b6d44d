#include "engine/scripted/embedder.h"

#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "engine/scripted/lexicon.h"

namespace modeld {
namespace {

constexpr std::size_t kDim = 256;

class ScriptedEmbedder final : public Embedder {
 public:
  explicit ScriptedEmbedder(const std::vector<std::vector<std::string>>& synonyms) {
    for (const auto& group : synonyms)
      for (const std::string& word : group) meaning_[word] = group.front();
  }

  [[nodiscard]] std::string name() const override { return "scripted"; }
  [[nodiscard]] std::int32_t dim() const override { return kDim; }
  Result<std::vector<std::vector<float>>> embed(std::span<const std::string> texts) override {
    std::vector<std::vector<float>> vectors;
    vectors.reserve(texts.size());
    for (const std::string& text : texts) vectors.push_back(vector_of(text));
    return vectors;
  }

 private:
  [[nodiscard]] std::vector<float> vector_of(const std::string& text) const {
    std::vector<float> sum(kDim, 0.0F);
    std::string word;
    for (const char c : text + " ") {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (letter) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      if (!letter && !word.empty()) add(std::exchange(word, {}), sum);
    }
    float square = 0.0F;
    for (const float x : sum) square += x * x;
    if (square > 0.0F)
      for (float& x : sum) x /= std::sqrt(square);
    return sum;
  }

  void add(const std::string& word, std::vector<float>& sum) const {
    // Short words, mostly articles and prepositions, mean nothing.
    if (word.size() < 4) return;
    const auto same = meaning_.find(word);
    std::mt19937_64 random(word_hash(same == meaning_.end() ? word : same->second));
    for (float& x : sum) x += (random() & 1U) != 0 ? 1.0F : -1.0F;
  }

  std::map<std::string, std::string> meaning_;
};

}  // namespace

std::unique_ptr<Embedder> open_scripted_embedder(const std::vector<std::vector<std::string>>& synonyms) {
  return std::make_unique<ScriptedEmbedder>(synonyms);
}

}  // namespace modeld
