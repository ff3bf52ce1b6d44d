// Opening and reading what a path names, without ever reading past a limit or hanging on a device.
// Thread: free of shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/cancel.h"
#include "base/error.h"

namespace modeld {

/// A file descriptor, closed at the end unless it is borrowed.
class InputFile {
 public:
  InputFile(int fd, bool owned) : fd_(fd), owned_(owned) {}
  InputFile(InputFile&& other) noexcept : fd_(other.fd_), owned_(std::exchange(other.owned_, false)) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
  bool owned_;
};

enum class FileKind : std::uint8_t { regular, directory, pipe, other };

struct FileFacts {
  FileKind kind = FileKind::other;
  /// Of a regular file; 0 for others, and for files that do not know it (those of /proc).
  std::uint64_t size = 0;
  /// Device and inode: the same for two names of one file.
  std::pair<std::uint64_t, std::uint64_t> id;
};

/// Of what `path` leads to, links followed. Errors: file_missing, io_failed.
Result<FileFacts> facts_of(const std::filesystem::path& path);
/// Of standard input from where it stands.
Result<FileFacts> facts_of_standard_input();

/// Opens a regular file or a pipe. Errors: file_missing (also without permission), io_failed.
Result<InputFile> open_input(const std::filesystem::path& path);
InputFile standard_input();

/// The first bytes of a regular file, at most `count`. Errors: io_failed.
Result<std::string> read_head(const InputFile& file, std::size_t count, std::string_view name);

/// Everything up to the end; `size_hint` bytes are reserved. Errors: text_too_large as soon as it is more than `limit`;
/// cancelled (within a tenth of a second, waiting for a pipe included); io_failed.
Result<std::string> read_to_end(const InputFile& file, std::uint64_t size_hint, std::uint64_t limit,
                                std::string_view name, const CancelFlag* cancel);

/// A path for messages and reports: its bytes, with what is not UTF-8, and control characters, replaced by U+FFFD.
std::string display_name(const std::filesystem::path& path);

}  // namespace modeld
