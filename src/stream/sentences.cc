#include "stream/sentences.h"

#include <cstddef>

namespace modeld {
namespace {

constexpr std::size_t kLongest = 400;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Whether a sentence or line ends before byte `at`.
bool ends_before(std::string_view text, std::size_t at) {
  if (at == text.size()) return true;
  if (text[at - 1] == '\n') return true;
  if (!is_space(text[at])) return false;
  std::size_t last = at;
  while (last > 0 && (text[last - 1] == '"' || text[last - 1] == '\'' || text[last - 1] == ')')) --last;
  return last > 0 && (text[last - 1] == '.' || text[last - 1] == '!' || text[last - 1] == '?');
}

/// Where to end a piece that is too long: after a word; within one only if it is all one; never within a character.
std::size_t cut_of(std::string_view text) {
  const std::size_t space = text.find_last_of(" \t", kLongest);
  if (space != std::string_view::npos && space > 0) return space;
  std::size_t cut = kLongest;
  while (cut > 1 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return cut;
}

}  // namespace

std::vector<std::string> sentences_of(std::string_view text, std::size_t shortest) {
  std::vector<std::string> sentences;
  const auto add = [&](std::string_view piece) {
    piece = trimmed(piece);
    while (piece.size() > kLongest) {
      const std::size_t cut = cut_of(piece);
      sentences.emplace_back(trimmed(piece.substr(0, cut)));
      piece = trimmed(piece.substr(cut));
    }
    if (!piece.empty()) sentences.emplace_back(piece);
  };
  std::size_t begin = 0;
  for (std::size_t at = 1; at <= text.size(); ++at) {
    if (!ends_before(text, at)) continue;
    if (at < text.size() && trimmed(text.substr(begin, at - begin)).size() < shortest) continue;
    add(text.substr(begin, at - begin));
    begin = at;
  }
  return sentences;
}

}  // namespace modeld
