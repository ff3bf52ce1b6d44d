// Which lines of a text a run of its bytes is on.
//
// A line ends after its "\n"; the last one may lack it. Lines count from 1. An empty text has one empty line.
// Thread: immutable once made.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace modeld {

/// Lines from 1, both inclusive.
struct LineRange {
  std::int64_t first = 1;
  std::int64_t last = 1;
  friend auto operator<=>(const LineRange&, const LineRange&) = default;
};

class LineMap {
 public:
  LineMap() = default;
  /// O(text). The text is not kept.
  explicit LineMap(std::string_view text);

  /// The line that holds a byte; an offset at or past the end is on the last line. O(log lines).
  [[nodiscard]] std::int64_t line_of(std::uint64_t offset) const;
  /// Lines that [begin, end) touches. An empty range touches the line of `begin`.
  [[nodiscard]] LineRange lines_of(std::uint64_t begin, std::uint64_t end) const;
  [[nodiscard]] std::int64_t lines() const { return static_cast<std::int64_t>(starts_.size()); }
  /// Offset of a line's first byte. REQUIRES 1 ≤ line ≤ lines().
  [[nodiscard]] std::uint64_t start_of(std::int64_t line) const;

 private:
  std::vector<std::uint64_t> starts_{0};
};

/// Bytes [begin, end) of a UTF-8 text, widened outwards to whole characters, and cut to the text. Valid as long as
/// `text` is.
std::string_view whole_characters(std::string_view text, std::uint64_t begin, std::uint64_t end);

}  // namespace modeld
