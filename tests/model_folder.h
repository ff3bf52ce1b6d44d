// Where the test models are: a missing one is a failure, never a skip, since scripts/models.sh fetches them.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace modeld {

inline std::filesystem::path model_folder() {
  if (const char* folder = std::getenv("MODELD_TEST_MODELS")) return folder;
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return std::filesystem::path(cache) / "modeld" / "models";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : ".") / ".cache" / "modeld" / "models";
}

}  // namespace modeld
