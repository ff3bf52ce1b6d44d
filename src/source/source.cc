// Two passes. The first looks at everything and adds up sizes: what cannot work is refused before any text is in
// memory, however much there is. The second reads, one file at a time, and never more than what the limit still leaves.
#include "source/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "source/encoding.h"
#include "source/file_bytes.h"
#include "source/walk.h"

namespace modeld {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = 8192;

/// One file to read, or one that is skipped already.
struct Entry {
  fs::path path;
  std::string name;
  std::uint64_t size = 0;
  /// Index of the argument that led to it.
  std::size_t argument = 0;
  bool below_directory = false;
  std::optional<ErrorCode> skip;
};

bool is_standard_input(const fs::path& path) { return path == "-"; }

class Reader {
 public:
  Reader(std::span<const fs::path> paths, const SourceLimits& limits, const CancelFlag* cancel)
      : paths_(paths), limits_(limits), cancel_(cancel) {}

  Result<Sources> read() {
    if (paths_.empty())
      return fail(ErrorCode::bad_argument, "No text was named. Name a file, a directory, or - for standard input.");
    if (std::ranges::count_if(paths_, is_standard_input) > 1) {
      return fail(ErrorCode::bad_argument, "Standard input was named twice. It can be read once only.");
    }
    for (std::size_t i = 0; i < paths_.size(); ++i) MODELD_TRY_VOID(look_at(i));
    MODELD_TRY_VOID(check_total());
    for (const Entry& entry : entries_) MODELD_TRY_VOID(read_entry(entry));
    MODELD_TRY_VOID(check_directories());
    return std::move(sources_);
  }

 private:
  Status look_at(std::size_t argument) {
    const fs::path& path = paths_[argument];
    const bool standard = is_standard_input(path);
    const std::string name = standard ? "standard input" : display_name(path);
    MODELD_TRY(const FileFacts facts, standard ? facts_of_standard_input() : facts_of(path));
    if (facts.kind == FileKind::directory && !standard) return look_below(argument);
    // Standard input may be a terminal, a device; any other device is a mistake.
    if (facts.kind == FileKind::directory || (facts.kind == FileKind::other && !standard)) {
      return fail(ErrorCode::bad_argument,
                  fmt::format("{} is no file, directory or pipe. Name one, or - for standard input.", name));
    }
    entries_.push_back({path, name, facts.size, argument, false, std::nullopt});
    return {};
  }

  Status look_below(std::size_t argument) {
    const WalkLimits limits{limits_.max_files - std::min(entries_.size(), limits_.max_files), limits_.max_depth};
    MODELD_TRY(const std::vector<FoundFile> found, walk(paths_[argument], limits, cancel_));
    for (const FoundFile& file : found) {
      Entry entry{file.path, display_name(file.path.lexically_normal()), file.facts.size, argument, true, file.failure};
      if (!entry.skip && file.facts.kind != FileKind::regular) entry.skip = ErrorCode::bad_argument;
      if (!entry.skip) entry.skip = sniff(entry);
      entries_.push_back(std::move(entry));
    }
    return {};
  }

  /// Why a file below a directory is not even read: so that no film among the sources counts as text.
  static std::optional<ErrorCode> sniff(const Entry& entry) {
    const auto file = open_input(entry.path);
    if (!file) return file.error().code;
    const auto head = read_head(*file, kHeadBytes, entry.name);
    if (!head) return head.error().code;
    if (looks_binary(*head)) return ErrorCode::text_binary;
    return std::nullopt;
  }

  Status check_total() const {
    std::uint64_t total = 0;
    std::size_t files = 0;
    for (const Entry& entry : entries_) {
      if (entry.skip) continue;
      // Sparse files may claim more than a number holds.
      total = std::min(total + entry.size, std::uint64_t{std::numeric_limits<std::int64_t>::max()});
      ++files;
    }
    if (total <= limits_.max_bytes) return {};
    return too_large(total, files == 1 ? "The text" : fmt::format("The text of {} files", files));
  }

  tl::unexpected<Error> too_large(std::uint64_t bytes, std::string_view what) const {
    return fail(
        ErrorCode::text_too_large,
        fmt::format("{} is {} bytes; the memory budget allows {}. Give less text, or a larger budget.", what, bytes,
                    limits_.max_bytes),
        {{"bytes", static_cast<std::int64_t>(bytes)}, {"limit_bytes", static_cast<std::int64_t>(limits_.max_bytes)}});
  }

  Status read_entry(const Entry& entry) {
    if (entry.skip) {
      sources_.skipped.push_back({entry.name, *entry.skip});
      return {};
    }
    auto text = read_text(entry);
    if (text) {
      sources_.texts.push_back(std::move(*text));
      ++texts_of_[entry.argument];
      return {};
    }
    const ErrorCode code = text.error().code;
    const bool about_the_file = code == ErrorCode::text_binary || code == ErrorCode::text_encoding ||
                                code == ErrorCode::text_empty || code == ErrorCode::file_missing ||
                                code == ErrorCode::io_failed;
    if (!entry.below_directory || !about_the_file) return tl::unexpected(std::move(text).error());
    sources_.skipped.push_back({entry.name, code});
    return {};
  }

  Result<SourceText> read_text(const Entry& entry) {
    MODELD_TRY(const InputFile file, is_standard_input(entry.path) ? standard_input() : open_input(entry.path));
    const std::uint64_t left = limits_.max_bytes - std::min(limits_.max_bytes, std::max(raw_bytes_, text_bytes_));
    MODELD_TRY(std::string bytes, read_to_end(file, entry.size, left, entry.name, cancel_));
    const std::uint64_t raw = bytes.size();
    MODELD_TRY(DecodedText decoded, decode_text(std::move(bytes), entry.name));
    raw_bytes_ += raw;
    text_bytes_ += decoded.text.size();
    if (text_bytes_ > limits_.max_bytes) return too_large(text_bytes_, "The text as UTF-8");
    SourceText text;
    text.name = entry.name;
    text.lines = LineMap(decoded.text);
    text.text = std::move(decoded.text);
    text.encoding = std::move(decoded.encoding);
    return text;
  }

  Status check_directories() {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (texts_of_[i] > 0) continue;
      const auto skipped = std::ranges::count_if(entries_, [&](const Entry& e) { return e.argument == i; });
      return fail(
          ErrorCode::text_empty,
          fmt::format("The directory {} holds no text: {} files were looked at and none could be used. Name one "
                      "that does.",
                      display_name(paths_[i]), skipped),
          {{"skipped_files", skipped}});
    }
    return {};
  }

  std::span<const fs::path> paths_;
  const SourceLimits& limits_;
  const CancelFlag* cancel_;
  std::vector<Entry> entries_;
  Sources sources_;
  std::vector<std::size_t> texts_of_ = std::vector<std::size_t>(paths_.size(), 0);
  std::uint64_t raw_bytes_ = 0;
  std::uint64_t text_bytes_ = 0;
};

}  // namespace

std::uint64_t Sources::bytes() const {
  std::uint64_t sum = 0;
  for (const SourceText& text : texts) sum += text.text.size();
  return sum;
}

Result<Sources> read_sources(std::span<const fs::path> paths, const SourceLimits& limits, const CancelFlag* cancel) {
  return Reader(paths, limits, cancel).read();
}

}  // namespace modeld
