#include "eval/code_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace modeld {
namespace {

bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// The source with everything inside strings and comments blanked, at the same places. Quotes stay.
std::string blanked(std::string_view text) {
  std::string code(text);
  for (std::size_t at = 0; at < code.size();) {
    if (code[at] == '#') {
      while (at < code.size() && code[at] != '\n') code[at++] = ' ';
    } else if (code[at] == '"' || code[at] == '\'') {
      const char quote = code[at];
      const bool triple = code.compare(at, 3, std::string(3, quote)) == 0;
      const std::size_t marks = triple ? 3 : 1;
      at += marks;
      while (at < code.size()) {
        if (code[at] == '\\' && at + 1 < code.size()) {
          code[at] = code[at + 1] = '.';
          at += 2;
        } else if (code.compare(at, marks, std::string(marks, quote)) == 0) {
          at += marks;
          break;
        } else if (!triple && code[at] == '\n') {
          break;  // not closed on its line: no string that we understand
        } else {
          if (code[at] != '\n') code[at] = '.';
          ++at;
        }
      }
    } else {
      ++at;
    }
  }
  return code;
}

struct Literal {
  std::string text;  // without quotes
  std::size_t at = 0;
};

/// [begin, end) as one number or one short plain string, and nothing else.
std::optional<Literal> literal(std::string_view text, std::size_t begin, std::size_t end) {
  while (begin < end && (text[begin] == ' ' || text[begin] == '\n')) ++begin;
  while (end > begin && (text[end - 1] == ' ' || text[end - 1] == '\n')) --end;
  const std::string_view whole = text.substr(begin, end - begin);
  if (whole.size() < 2 || whole.size() > 32) return std::nullopt;
  if (whole.front() == '\'' || whole.front() == '"') {
    const std::string_view inner = whole.substr(1, whole.size() - 2);
    if (whole.back() != whole.front() || inner.size() < 2) return std::nullopt;
    const bool plain =
        std::all_of(inner.begin(), inner.end(), [](char c) { return is_name(c) || c == '-' || c == '.'; });
    if (!plain) return std::nullopt;
    return Literal{std::string(inner), begin + 1};
  }
  const bool number = whole.front() >= '0' && whole.front() <= '9' &&
                      std::all_of(whole.begin(), whole.end(), [](char c) { return is_name(c) || c == '.'; });
  if (!number) return std::nullopt;
  return Literal{std::string(whole), begin};
}

std::size_t line_end(std::string_view text, std::size_t at) { return std::min(text.size(), text.find('\n', at)); }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), code_(blanked(text)) {}

  std::vector<CodeFact> facts() {
    for (std::size_t at = 0; at < code_.size(); at = line_end(code_, at) + 1) {
      constant(at);
      std::size_t word = at;
      while (word < code_.size() && code_[word] == ' ') ++word;
      if (code_.compare(word, 6, "async ") == 0) word += 6;
      if (code_.compare(word, 4, "def ") == 0) function(word);
    }
    std::vector<CodeFact> kept;
    for (auto& [name, fact] : found_)
      if (times_[name] == 1) kept.push_back(std::move(fact));
    std::stable_sort(kept.begin(), kept.end(), [](const CodeFact& a, const CodeFact& b) { return a.begin < b.begin; });
    return kept;
  }

 private:
  void constant(std::size_t at) {
    std::size_t end = at;
    while (end < code_.size() && is_name(code_[end])) ++end;
    const std::string name(text_.substr(at, end - at));
    const bool upper = name.size() >= 4 &&
                       std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; }) &&
                       std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!upper || code_.compare(end, 3, " = ") != 0) return;
    ++times_[name];
    const std::size_t stop = line_end(code_, end);
    const auto value = literal(std::string_view(text_).substr(0, stop), end + 3, code_end(end + 3, stop));
    if (!value) return;
    found_.emplace_back(
        name, CodeFact{"constant", fmt::format("What is the value of the constant {}?", name),
                       fmt::format("The value of the constant {} is", name), value->text, at, stop, value->at});
  }

  /// Where the code before a comment ends.
  [[nodiscard]] std::size_t code_end(std::size_t from, std::size_t stop) const {
    while (stop > from && code_[stop - 1] == ' ') --stop;
    return stop;
  }

  void function(std::size_t at) {
    const std::size_t begin = at + 4;
    std::size_t end = begin;
    while (end < code_.size() && is_name(code_[end])) ++end;
    const std::string name(text_.substr(begin, end - begin));
    if (end >= code_.size() || code_[end] != '(') return;
    ++times_["def " + name];
    int depth = 0;
    std::size_t argument = end + 1;
    std::size_t equals = std::string::npos;  // of the parameter at hand
    for (std::size_t i = end; i < code_.size(); ++i) {
      const char c = code_[i];
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
      if (depth == 1 && c == '=' && equals == std::string::npos) equals = i;
      if ((depth == 1 && c == ',') || depth == 0) {
        if (equals != std::string::npos && !name.starts_with("__")) parameter(name, at, argument, equals, i);
        argument = i + 1;
        equals = std::string::npos;
      }
      if (depth == 0) return;
    }
  }

  void parameter(const std::string& function, std::size_t head, std::size_t begin, std::size_t equals,
                 std::size_t end) {
    while (begin < equals && !is_name(code_[begin])) ++begin;
    std::size_t stop = begin;
    while (stop < equals && is_name(code_[stop])) ++stop;
    const std::string name(text_.substr(begin, stop - begin));
    const auto value = literal(text_, equals + 1, end);
    if (!value || name.empty()) return;
    found_.emplace_back(
        "def " + function,
        CodeFact{"default",
                 fmt::format("What is the default value of the parameter {} of the function {}?", name, function),
                 fmt::format("The default value of the parameter {} of the function {} is", name, function),
                 value->text, head, end, value->at});
  }

  std::string_view text_;
  std::string code_;
  std::vector<std::pair<std::string, CodeFact>> found_;
  std::map<std::string, int> times_;
};

}  // namespace

std::vector<CodeFact> python_facts(std::string_view text) { return Parser(text).facts(); }

}  // namespace modeld
