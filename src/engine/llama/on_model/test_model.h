// The models that these tests need, and small steps that they all take.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/llama/open.h"
#include "model_folder.h"

namespace modeld::on_model {

inline std::filesystem::path model_path(const std::string& file) { return model_folder() / file; }
inline std::filesystem::path smollm2() { return model_path("SmolLM2-135M-Instruct.Q4_1.gguf"); }
inline std::filesystem::path gemma3() { return model_path("gemma-3-270m-Q4_K_M.gguf"); }

/// Opened once in the process; a missing model fails the test.
inline Engine& opened(const std::filesystem::path& path) {
  static std::vector<std::pair<std::filesystem::path, std::unique_ptr<Engine>>> engines;
  for (auto& [known, engine] : engines)
    if (known == path) return *engine;
  auto engine = open_llama(path, {.model_digest = "not needed here", .repack = true});
  if (!engine) {
    ADD_FAILURE() << to_text(engine.error());
    throw std::runtime_error("the test model " + path.string() + " cannot be opened");
  }
  engines.emplace_back(path, std::move(*engine));
  return *engines.back().second;
}

inline void expect_ok(const Status& status) { ASSERT_TRUE(status) << to_text(status.error()); }
inline void expect_code(const Status& status, ErrorCode code) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, code) << to_text(status.error());
}

/// Plausible text of any length: numbered sentences.
inline std::vector<Token> text_tokens(const Engine& engine, std::size_t count) {
  std::string text;
  for (int i = 0; text.size() < count * 8; ++i)
    text +=
        "Room " + std::to_string(i) + " of the old house has a blue door and " + std::to_string(i % 7) + " windows. ";
  auto tokens = engine.tokenize(text, true, false).value();
  tokens.resize(count);
  return tokens;
}

/// The tokens at consecutive places, logits after the last one only.
inline std::vector<BatchToken> batch_of(std::span<const Token> tokens, std::int32_t first = 0, SeqId seq = 0) {
  std::vector<BatchToken> batch;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    batch.push_back({.token = tokens[i], .place = Place(first + static_cast<std::int32_t>(i)), .seq = seq});
  batch.back().logits = true;
  return batch;
}

inline std::vector<float> last_logits(const Engine& engine, std::size_t index) {
  const auto row = engine.logits(index);
  return {row.begin(), row.end()};
}

/// KL divergence of the distributions that two rows of logits stand for.
inline double divergence(std::span<const float> p, std::span<const float> q) {
  const auto log_sum = [](std::span<const float> x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float v : x) sum += std::exp(static_cast<double>(v) - top);
    return top + std::log(sum);
  };
  const double p_norm = log_sum(p);
  const double q_norm = log_sum(q);
  double kl = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double lp = static_cast<double>(p[i]) - p_norm;
    kl += std::exp(lp) * (lp - (static_cast<double>(q[i]) - q_norm));
  }
  return kl;
}

inline PlaceRange places(std::int32_t begin, std::int32_t end) { return {Place(begin), Place(end)}; }

}  // namespace modeld::on_model
