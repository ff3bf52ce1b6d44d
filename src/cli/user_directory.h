// Where the XDG base directory specification puts a program's own files.
#pragma once

#include <filesystem>
#include <optional>

namespace modeld {

/// $VARIABLE/modeld, or ~/below_home/modeld; nothing where neither is an absolute path (the specification ignores
/// others).
std::optional<std::filesystem::path> user_directory(const char* variable, const char* below_home);

}  // namespace modeld
