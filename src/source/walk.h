// The files below a directory, in an order that depends on their names only.
// Thread: free of shared state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "source/file_bytes.h"

namespace modeld {

struct FoundFile {
  std::filesystem::path path;
  FileFacts facts;
  /// Set where its facts could not be had (a broken link) or, for a directory, its entries: file_missing, io_failed.
  std::optional<ErrorCode> failure;
};

struct WalkLimits {
  std::size_t max_files = 0;
  std::size_t max_depth = 0;
};

/// Everything but directories below `root`, links to files followed, links to directories not; each file once (by
/// device and inode). Hidden entries and folders of version control are left out. Errors: file_missing (root cannot be
/// listed), text_too_large (files, limit_files), bad_argument (nested too deep), cancelled.
Result<std::vector<FoundFile>> walk(const std::filesystem::path& root, const WalkLimits& limits,
                                    const CancelFlag* cancel);

}  // namespace modeld
