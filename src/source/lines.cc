#include "source/lines.h"

#include <algorithm>

#include "base/check.h"

namespace modeld {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

LineMap::LineMap(std::string_view text) {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at + 1 < text.size()) starts_.push_back(at + 1);
  }
}

std::int64_t LineMap::line_of(std::uint64_t offset) const {
  return std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin();
}

LineRange LineMap::lines_of(std::uint64_t begin, std::uint64_t end) const {
  return {line_of(begin), line_of(end > begin ? end - 1 : begin)};
}

std::uint64_t LineMap::start_of(std::int64_t line) const {
  MODELD_CHECK(line >= 1 && line <= lines());
  return starts_[static_cast<std::size_t>(line - 1)];
}

std::string_view whole_characters(std::string_view text, std::uint64_t begin, std::uint64_t end) {
  auto last = static_cast<std::size_t>(std::min<std::uint64_t>(end, text.size()));
  auto first = static_cast<std::size_t>(std::min<std::uint64_t>(begin, last));
  if (first == last) return text.substr(first, 0);
  while (first > 0 && continues(text[first])) --first;
  while (last < text.size() && continues(text[last])) ++last;
  return text.substr(first, last - first);
}

}  // namespace modeld
