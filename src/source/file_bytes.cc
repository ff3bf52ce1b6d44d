#include "source/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "source/encoding.h"

namespace modeld {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

tl::unexpected<Error> cannot_open(const std::filesystem::path& path, int error) {
  const bool io = error == EIO || error == EMFILE || error == ENFILE || error == ENOMEM;
  return fail(
      io ? ErrorCode::io_failed : ErrorCode::file_missing,
      fmt::format("{} cannot be read: {}. Check the name and the permissions.", display_name(path), reason(error)));
}

tl::unexpected<Error> cannot_read(std::string_view name, int error) {
  return fail(ErrorCode::io_failed, fmt::format("Reading {} failed: {}.", name, reason(error)));
}

FileFacts to_facts(const struct stat& s) {
  FileFacts facts;
  facts.id = {s.st_dev, s.st_ino};
  if (S_ISREG(s.st_mode)) {
    facts.kind = FileKind::regular;
    facts.size = static_cast<std::uint64_t>(std::max<off_t>(s.st_size, 0));
  } else if (S_ISDIR(s.st_mode)) {
    facts.kind = FileKind::directory;
  } else if (S_ISFIFO(s.st_mode)) {
    facts.kind = FileKind::pipe;
  }
  return facts;
}

/// read(), tried again when a signal came in between.
ssize_t read_some(int fd, char* to, std::size_t count) {
  while (true) {
    const ssize_t got = ::read(fd, to, count);
    if (got >= 0 || errno != EINTR) return got;
  }
}

/// Waits for data or the end of it.
Status wait_readable(int fd, std::string_view name, const CancelFlag* cancel) {
  while (true) {
    if (cancel != nullptr && cancel->requested()) return fail(ErrorCode::cancelled, "Cancelled.");
    pollfd p{fd, POLLIN, 0};
    const int ready = ::poll(&p, 1, 100);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return cannot_read(name, errno);
  }
}

}  // namespace

InputFile::~InputFile() {
  if (owned_) ::close(fd_);
}

Result<FileFacts> facts_of(const std::filesystem::path& path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0) return cannot_open(path, errno);
  return to_facts(s);
}

Result<FileFacts> facts_of_standard_input() {
  struct stat s{};
  if (::fstat(STDIN_FILENO, &s) != 0) return cannot_read("standard input", errno);
  FileFacts facts = to_facts(s);
  const off_t at = facts.kind == FileKind::regular ? ::lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
  facts.size -= std::min(facts.size, static_cast<std::uint64_t>(std::max<off_t>(at, 0)));
  return facts;
}

Result<InputFile> open_input(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe without a writer is waited for in wait_readable(), where a cancel is heard.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return cannot_open(path, errno);
  return InputFile(fd, true);
}

InputFile standard_input() { return {STDIN_FILENO, false}; }

Result<std::string> read_head(const InputFile& file, std::size_t count, std::string_view name) {
  std::string head(count, '\0');
  const ssize_t got = ::pread(file.fd(), head.data(), count, 0);
  if (got < 0) return cannot_read(name, errno);
  head.resize(static_cast<std::size_t>(got));
  return head;
}

Result<std::string> read_to_end(const InputFile& file, std::uint64_t size_hint, std::uint64_t limit,
                                std::string_view name, const CancelFlag* cancel) {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  std::string out;
  out.reserve(std::min(size_hint, limit) + 1);
  while (true) {
    MODELD_TRY_VOID(wait_readable(file.fd(), name, cancel));
    const std::size_t had = out.size();
    // One byte more than may be read, at most: it shows that there is more.
    const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(limit - had + 1, kPiece));
    out.resize(had + std::min(room, std::max<std::size_t>(out.capacity() - had, 65'536)));
    const ssize_t got = read_some(file.fd(), out.data() + had, out.size() - had);
    const int error = errno;
    out.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && (error == EAGAIN || error == EWOULDBLOCK)) continue;
    if (got < 0) return cannot_read(name, error);
    if (got == 0) return out;
    if (out.size() > limit) {
      return fail(
          ErrorCode::text_too_large,
          fmt::format("{} holds more than the {} bytes that the memory budget leaves for it. Give less text, or a "
                      "larger budget.",
                      name, limit),
          {{"bytes", static_cast<std::int64_t>(out.size())}, {"limit_bytes", static_cast<std::int64_t>(limit)}});
    }
  }
}

std::string display_name(const std::filesystem::path& path) {
  std::string_view rest = path.native();
  std::string name;
  while (const auto invalid = first_invalid_utf8(rest)) {
    name.append(rest.substr(0, *invalid)).append("\xEF\xBF\xBD");
    rest.remove_prefix(*invalid + 1);
  }
  name.append(rest);
  // A line end in a name would make two lines of a report.
  std::string shown;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      shown += "\xEF\xBF\xBD";
    } else {
      shown += c;
    }
  }
  return shown;
}

}  // namespace modeld
