#include "store/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include "store/fault.h"

namespace modeld {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

std::filesystem::path beside(const std::filesystem::path& path) { return path.string() + ".new"; }

/// Writes all of `data` and moves `offset` behind it.
Status write_all(int fd, const std::filesystem::path& path, std::span<const std::byte> data, std::uint64_t& offset) {
  while (!data.empty()) {
    if (const int error = fault_at(FaultPoint::write)) return file_error(path, "Writing", error);
    const ssize_t wrote = ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return file_error(path, "Writing", errno);
    data = data.subspan(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

Result<FileHandle> open_for_writing(const std::filesystem::path& path, int flags) {
  if (const int error = fault_at(FaultPoint::create)) return file_error(path, "Writing", error);
  FileHandle file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, kFileMode));
  if (!file.is_open()) return file_error(path, "Writing", errno);
  return file;
}

Status sync_one(const std::filesystem::path& path, int flags, FaultPoint point) {
  const FileHandle file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) return file_error(path, "Syncing", errno);
  if (const int error = fault_at(point)) return file_error(path, "Syncing", error);
  // Some file systems cannot sync a directory and say EINVAL; its files are safe by then.
  const bool directory = point == FaultPoint::sync_directory;
  if (::fsync(file.fd()) != 0 && !(directory && errno == EINVAL)) return file_error(path, "Syncing", errno);
  return {};
}

}  // namespace

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

int FileHandle::release() { return std::exchange(fd_, -1); }

tl::unexpected<Error> file_error(const std::filesystem::path& path, std::string_view doing, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  const std::string reason = std::generic_category().message(error);
  if (full) {
    return fail(ErrorCode::disk_full,
                fmt::format("{} {} failed: {}. Free some room there, or give --state a directory on another disk.",
                            doing, path.string(), reason));
  }
  return fail(ErrorCode::io_failed, fmt::format("{} {} failed: {}.", doing, path.string(), reason));
}

Status make_private_directory(const std::filesystem::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return {};
    return file_error(path, "Making the directory", ENOTDIR);
  }
  if (path.has_parent_path() && path.parent_path() != path) {
    std::error_code error;
    if (!std::filesystem::is_directory(path.parent_path(), error))
      if (Status made = make_private_directory(path.parent_path()); !made) return made;
  }
  if (::mkdir(path.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
    return file_error(path, "Making the directory", errno);
  return {};
}

Status write_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces) {
  const std::filesystem::path fresh = beside(path);
  const auto give_up = [&](Status status) {
    ::unlink(fresh.c_str());
    return status;
  };
  {
    MODELD_TRY(const FileHandle file, open_for_writing(fresh, O_TRUNC));
    std::uint64_t offset = 0;
    for (const std::span<const std::byte> piece : pieces)
      if (Status wrote = write_all(file.fd(), fresh, piece, offset); !wrote) return give_up(std::move(wrote));
  }
  if (const int error = fault_at(FaultPoint::rename)) return give_up(file_error(path, "Renaming", error));
  if (::rename(fresh.c_str(), path.c_str()) != 0) return give_up(file_error(path, "Renaming", errno));
  return {};
}

Status overwrite_file(const std::filesystem::path& path, std::uint64_t offset, std::span<const std::byte> data) {
  MODELD_TRY(const FileHandle file, open_for_writing(path, 0));
  return write_all(file.fd(), path, data, offset);
}

Status sync_files(std::span<const std::filesystem::path> paths) {
  std::set<std::filesystem::path> directories;
  for (const std::filesystem::path& path : paths) {
    MODELD_TRY_VOID(sync_one(path, O_RDONLY, FaultPoint::sync));
    directories.insert(path.parent_path());
  }
  for (const std::filesystem::path& directory : directories)
    MODELD_TRY_VOID(sync_one(directory, O_RDONLY | O_DIRECTORY, FaultPoint::sync_directory));
  return {};
}

Status read_file(const std::filesystem::path& path, std::uint64_t offset, std::span<std::byte> into) {
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) return file_error(path, "Reading", errno);
  while (!into.empty()) {
    if (const int error = fault_at(FaultPoint::read)) return file_error(path, "Reading", error);
    const ssize_t got = ::pread(file.fd(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(path, "Reading", errno);
    if (got == 0)
      return fail(ErrorCode::state_damaged, fmt::format("{} is shorter than it was written.", path.string()));
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<std::uint64_t> file_bytes(const std::filesystem::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return file_error(path, "Reading", errno);
  if (!S_ISREG(found.st_mode))
    return fail(ErrorCode::state_damaged, fmt::format("{} is not a regular file.", path.string()));
  return static_cast<std::uint64_t>(found.st_size);
}

Status remove_file(const std::filesystem::path& path) {
  if (const int error = fault_at(FaultPoint::remove)) return file_error(path, "Removing", error);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return file_error(path, "Removing", errno);
  return {};
}

}  // namespace modeld
