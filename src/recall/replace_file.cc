#include "recall/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace modeld {
namespace {

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  /// The last place where a full disk can show itself.
  [[nodiscard]] bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

tl::unexpected<Error> failed(std::string_view what, const std::filesystem::path& path, int error) {
  const std::string reason = std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT) {
    return fail(ErrorCode::disk_full,
                fmt::format("There is no room to write {} ({}). Free some space on that disk and try again.",
                            path.string(), reason));
  }
  return fail(
      ErrorCode::io_failed,
      fmt::format("{} {} failed: {}. Check that the directory exists and may be written.", what, path.string(), reason),
      {{"errno", error}});
}

/// 0, or the errno of the call that failed.
int write_all(int fd, std::string_view content, const WriteCall& write_call) {
  while (!content.empty()) {
    const ssize_t n =
        write_call ? write_call(fd, content.data(), content.size()) : ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

/// Writes, syncs and closes; 0 or an errno.
int fill(File& file, std::string_view content, const WriteCall& write_call) {
  if (const int error = write_all(file.get(), content, write_call); error != 0) return error;
  if (::fsync(file.get()) != 0) return errno;
  return file.close() ? 0 : errno;
}

}  // namespace

Status replace_file(const std::filesystem::path& path, std::string_view content, const WriteCall& write_call) {
  std::filesystem::path directory = path.parent_path();
  if (directory.empty()) directory = ".";
  std::error_code made;
  std::filesystem::create_directories(directory, made);
  if (made) return failed("Making the directory", directory, made.value());

  std::string beside = path.string() + ".XXXXXX";
  File file(::mkostemp(beside.data(), O_CLOEXEC));
  if (file.get() < 0) return failed("Creating a file beside", path, errno);
  int error = fill(file, content, write_call);
  if (error == 0 && ::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(beside.c_str());
    return failed("Writing", path, error);
  }
  const File parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a directory and say EINVAL; the file itself is safe by then.
  if (parent.get() >= 0 && ::fsync(parent.get()) != 0 && errno != EINVAL) return failed("Syncing", directory, errno);
  return {};
}

}  // namespace modeld
