// Writing a small file whole or not at all.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/error.h"

namespace modeld {

/// Like write(2): the bytes written, or -1 with errno set. The seam through which tests fill the disk.
using WriteCall = std::function<ssize_t(int fd, const void* data, std::size_t size)>;

/// Writes `content` beside `path` (mode 0600, missing directories are made), syncs it, renames it over `path` and syncs
/// the directory. A reader sees the old file or the new one; after an error the old one is untouched and nothing lies
/// beside it. Errors: disk_full, io_failed.
Status replace_file(const std::filesystem::path& path, std::string_view content, const WriteCall& write_call = {});

}  // namespace modeld
