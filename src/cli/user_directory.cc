#include "cli/user_directory.h"

#include <cstdlib>

namespace modeld {

std::optional<std::filesystem::path> user_directory(const char* variable, const char* below_home) {
  if (const char* named = std::getenv(variable); named != nullptr && named[0] == '/')
    return std::filesystem::path(named) / "modeld";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return std::filesystem::path(home) / below_home / "modeld";
  return std::nullopt;
}

}  // namespace modeld
