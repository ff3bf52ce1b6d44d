// Files that are whole or not there: written beside, renamed into place, synced before anything names them.
//
// Modes:  files 0600, directories 0700: KV and text are what the user wrote.
// Errors: disk_full (no room, quota), io_failed; the sentence has the path and the system's reason.
// Thread: any; two threads do not write the same path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace modeld {

/// An open file, closed at the end.
class FileHandle {
 public:
  explicit FileHandle(int fd = -1) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(other.release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  int release();

 private:
  int fd_;
};

/// "disk_full" or "io_failed" for what `error`, an errno, did to `path` while `doing` ("writing").
tl::unexpected<Error> file_error(const std::filesystem::path& path, std::string_view doing, int error);

/// Makes a directory and what is missing above it, 0700 each. Errors also: io_failed for a file or a link in its place.
Status make_private_directory(const std::filesystem::path& path);

/// Puts `pieces`, one after the other, into `path`, replacing what was there; on an error `path` is as it was. Whole as
/// soon as it has its name, durable after sync_files().
Status write_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);

/// Writes `data` at `offset` of a file that is made if it is missing; what stands elsewhere in it stays.
Status overwrite_file(const std::filesystem::path& path, std::uint64_t offset, std::span<const std::byte> data);

/// Makes files and the entries of their directories durable.
Status sync_files(std::span<const std::filesystem::path> paths);

/// Reads `bytes` from `offset` on. Errors also: state_damaged where the file ends before.
Status read_file(const std::filesystem::path& path, std::uint64_t offset, std::span<std::byte> into);
/// Of a regular file; links are not followed. Errors: state_damaged for anything else in its place, io_failed.
Result<std::uint64_t> file_bytes(const std::filesystem::path& path);

/// Removes a file; one that is not there is fine.
Status remove_file(const std::filesystem::path& path);

}  // namespace modeld
