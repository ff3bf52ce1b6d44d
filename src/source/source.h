// What a user names on the command line becomes text: files, directories, pipes and standard input.
//
// Invariants: - memory first: sizes are summed and checked against the limit before any text is read, and no read goes
// past it;
//             - nothing is left out silently: what was named is read or is an error; what a directory holds is read or
//             is in
//               `skipped` with its reason, except hidden entries and the folders of version control, which are no part
//               of it;
//             - text is valid UTF-8 (see encoding.h); the order of texts depends on names only.
// Thread:     free of shared state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "source/lines.h"

namespace modeld {

struct SourceLimits {
  /// Of all texts together, before and after their conversion to UTF-8.
  std::uint64_t max_bytes = 0;
  /// Files below the named directories, binary ones included.
  std::size_t max_files = 100'000;
  /// Directories below each other.
  std::size_t max_depth = 64;
};

struct SourceText {
  /// The path as the user would write it, "standard input" for "-". Valid UTF-8.
  std::string name;
  std::string text;
  LineMap lines;
  std::string encoding;
};

struct SkippedFile {
  std::string name;
  /// text_binary, text_encoding, text_empty; file_missing, io_failed for what cannot be read; bad_argument for pipes
  /// and devices.
  ErrorCode reason = ErrorCode::text_binary;
};

struct Sources {
  /// In the order of the arguments; within a directory by name, byte by byte, directories among files.
  std::vector<SourceText> texts;
  /// Of the named directories, in the same order.
  std::vector<SkippedFile> skipped;
  [[nodiscard]] std::uint64_t bytes() const;
};

/// Reads all of `paths`. "-" is standard input, at most once. A named link is followed. Below a directory, links to
/// files are followed, links to directories are not, and each file is read once. A named pipe waits for its writer.
/// Errors: bad_argument (no path, "-" twice, a device or socket), file_missing, io_failed, text_too_large (with bytes
/// and limit_bytes, or files and limit_files), text_empty (also a directory without text), text_binary, text_encoding,
/// cancelled.
Result<Sources> read_sources(std::span<const std::filesystem::path> paths, const SourceLimits& limits,
                             const CancelFlag* cancel = nullptr);

}  // namespace modeld
