// The description of a model file together with what only the engine needs of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "model/geometry.h"

namespace modeld {

struct ModelFacts {
  ModelGeometry geometry;
  /// XXH3 digests of the tokenizer's tables and of the chat template, hex; the latter "" without one.
  std::string tokenizer_digest;
  std::string template_digest;
  /// Frequency bases, scale and kind of scaling, for the identity.
  std::string rope_text;
  /// Tokens of the sliding window; 0 if no layer has one.
  std::int32_t window = 0;
  /// Whether llama.cpp rotates this model's keys correctly when it moves them.
  bool can_move = true;
};

Result<ModelFacts> read_model_facts(const std::filesystem::path& gguf);

/// The first fatal entry of geometry.unsupported as an error; success if there is none.
Status check_supported(const ModelGeometry& geometry);

}  // namespace modeld
