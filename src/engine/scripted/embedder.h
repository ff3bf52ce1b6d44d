// The scripted embedder: a bag of words, in which some words mean the same. For fast and deterministic tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/embedder.h"

namespace modeld {

/// Words of one group of `synonyms` (lower case) are one word to it. Never null.
std::unique_ptr<Embedder> open_scripted_embedder(const std::vector<std::vector<std::string>>& synonyms = {});

}  // namespace modeld
