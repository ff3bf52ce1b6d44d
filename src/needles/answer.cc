#include <algorithm>
#include <string>

#include "needles/needles.h"

namespace modeld {
namespace {

/// Bytes beyond ASCII belong to letters of other scripts.
bool is_word(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x80U || (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || u == '_';
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

/// A number goes on after a separator: "7341" is not the number in "7,341,002" or "7341.5".
bool number_goes_on(std::string_view text, std::size_t at) {
  return at + 1 < text.size() && (text[at] == ',' || text[at] == '.') && text[at + 1] >= '0' && text[at + 1] <= '9' &&
         at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9';
}

bool ends_at(std::string_view text, std::size_t end) {
  return end == text.size() || (!is_word(text[end]) && !number_goes_on(text, end));
}

}  // namespace

bool answer_contains(std::string_view text, std::string_view answer) {
  if (answer.empty()) return false;
  const std::string where = lower(text);
  const std::string what = lower(answer);
  for (std::size_t at = where.find(what); at != std::string::npos; at = where.find(what, at + 1)) {
    const bool begins = at == 0 || !is_word(where[at - 1]);
    if (begins && ends_at(where, at + what.size())) return true;
  }
  return false;
}

bool answer_begins(std::string_view text, std::string_view answer) {
  if (answer.empty()) return false;
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return false;
  const std::string where = lower(text.substr(first));
  const std::string what = lower(answer);
  return where.starts_with(what) && ends_at(where, what.size());
}

}  // namespace modeld
