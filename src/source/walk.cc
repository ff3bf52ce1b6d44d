#include "source/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <system_error>

namespace modeld {
namespace {

namespace fs = std::filesystem;

// Those that are not hidden by their names.
constexpr std::array<std::string_view, 4> kVersionControl = {"CVS", "RCS", "SCCS", "_darcs"};

class Walker {
 public:
  Walker(const WalkLimits& limits, const CancelFlag* cancel) : limits_(limits), cancel_(cancel) {}

  Status visit(const fs::path& directory, std::size_t depth) {
    if (depth > limits_.max_depth) {
      return fail(ErrorCode::bad_argument,
                  fmt::format("Directories nest deeper than {} at {}. Name the inner ones instead.", limits_.max_depth,
                              display_name(directory)),
                  {{"limit_depth", static_cast<std::int64_t>(limits_.max_depth)}});
    }
    std::error_code ec;
    const std::vector<fs::path> entries = list(directory, ec);
    if (ec && depth == 0) {
      return fail(ErrorCode::file_missing,
                  fmt::format("The directory {} cannot be read: {}.", display_name(directory), ec.message()));
    }
    if (ec) {
      found_.push_back({directory, {FileKind::directory, 0, {}}, ErrorCode::file_missing});
      return {};
    }
    for (const fs::path& entry : entries) MODELD_TRY_VOID(take(entry, depth));
    return {};
  }

  std::vector<FoundFile> found() { return std::move(found_); }

 private:
  static std::vector<fs::path> list(const fs::path& directory, std::error_code& ec) {
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(directory, ec), end; !ec && it != end; it.increment(ec)) {
      if (!it->path().filename().native().starts_with('.')) entries.push_back(it->path());
    }
    std::ranges::sort(entries, {}, [](const fs::path& p) -> const std::string& { return p.native(); });
    return entries;
  }

  Status take(const fs::path& entry, std::size_t depth) {
    if (cancel_ != nullptr && cancel_->requested()) return fail(ErrorCode::cancelled, "Cancelled.");
    std::error_code ec;
    const bool link = fs::is_symlink(fs::symlink_status(entry, ec));
    auto facts = facts_of(entry);
    if (facts && facts->kind == FileKind::directory) {
      if (link || std::ranges::count(kVersionControl, entry.filename().native()) > 0) return {};
      return visit(entry, depth + 1);
    }
    if (facts && !seen_.insert(facts->id).second) return {};
    if (found_.size() == limits_.max_files) {
      return fail(ErrorCode::text_too_large,
                  fmt::format("There are more than {} files to read. Name a smaller directory.", limits_.max_files),
                  {{"files", static_cast<std::int64_t>(limits_.max_files + 1)},
                   {"limit_files", static_cast<std::int64_t>(limits_.max_files)}});
    }
    if (facts) {
      found_.push_back({entry, *facts, std::nullopt});
    } else {
      found_.push_back({entry, {}, facts.error().code});
    }
    return {};
  }

  const WalkLimits& limits_;
  const CancelFlag* cancel_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;
  std::vector<FoundFile> found_;
};

}  // namespace

Result<std::vector<FoundFile>> walk(const fs::path& root, const WalkLimits& limits, const CancelFlag* cancel) {
  Walker walker(limits, cancel);
  MODELD_TRY_VOID(walker.visit(root, 0));
  return walker.found();
}

}  // namespace modeld
