// Results by cell: one task at one length under one mode. A finished cell is a JSON file; a run that is started again
// with the same parameters takes it from there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace modeld {

/// Where one selector that ours is compared with ranks the answers' blocks, as QuestionResult::ranks.
struct SelectorRanks {
  std::string selector;
  std::vector<std::int32_t> ranks;
};

struct QuestionResult {
  std::string question;
  std::string expected;
  /// What followed the forced answer prefix.
  std::string forced;
  /// The share of what was wanted: 0 or 1 where that is one answer.
  double forced_right = 0.0;
  /// The answer without a prefix, where it was asked for.
  bool free_asked = false;
  std::string free;
  double free_right = 0.0;
  double depth = 0.0;
  /// Place in the ranking of each block that holds an answer, from 1; 0: not among those asked for. Empty: not asked.
  std::vector<std::int32_t> ranks;
  /// The same blocks in the rankings of the selectors beside ours, each by its name; where `ranks` is empty, none.
  std::vector<SelectorRanks> rivals;
  /// Share of those blocks that were read at last, and how often the answer went back for another.
  double read = 0.0;
  int returns = 0;
  /// Of the forced answer, prompt and generation.
  double seconds = 0.0;
};

struct Cell {
  std::string task;  // "prose.single"
  std::string mode;  // "ours"
  std::int64_t tokens = 0;
  /// Everything that the results depend on, one line.
  std::string parameters;
  std::vector<QuestionResult> results;
  /// Reading the text, once for all questions of all tasks that share it.
  double prepare_seconds = 0.0;

  [[nodiscard]] double forced_right() const;
  [[nodiscard]] double free_right() const;
  [[nodiscard]] std::int64_t free_asked() const;
  /// Share of their blocks that ranked questions were read from; nothing if none was ranked.
  [[nodiscard]] std::optional<double> read_right() const;
  /// Share of ranked questions' blocks that are among the first k; nothing if none was ranked.
  [[nodiscard]] std::optional<double> recall(std::int32_t k) const;
  /// The same by a selector beside ours.
  [[nodiscard]] std::optional<double> recall(std::int32_t k, std::string_view selector) const;
  /// Those selectors, in the order of the results.
  [[nodiscard]] std::vector<std::string> rivals() const;
  /// Questions that were ranked.
  [[nodiscard]] std::int64_t ranked() const;
};

class CellFolder {
 public:
  explicit CellFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// The stored cell if it has the same parameters. A damaged file is as good as none.
  [[nodiscard]] std::optional<Cell> load(const Cell& wanted) const;
  /// Written beside and renamed. Errors: io_failed, disk_full.
  Status save(const Cell& cell) const;
  /// Another file of the run; nothing if it is not there.
  [[nodiscard]] std::optional<std::string> read(std::string_view name) const;
  /// Writes another file of the run, as save() does.
  Status write(std::string_view name, std::string_view content) const;

 private:
  [[nodiscard]] std::filesystem::path path_of(const Cell& cell) const;
  std::filesystem::path folder_;
};

}  // namespace modeld
