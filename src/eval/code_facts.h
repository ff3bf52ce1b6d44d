// Facts that stand in source code, found by parsing it: the right answers come from the code itself.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace modeld {

struct CodeFact {
  /// "constant" or "default".
  std::string kind;
  std::string question;
  std::string answer_prefix;
  /// The literal; a string's without its quotes.
  std::string answer;
  /// Bytes of the statement, or of the function's head.
  std::size_t begin = 0;
  std::size_t end = 0;
  /// Of the literal.
  std::size_t answer_at = 0;
};

/// What Python source states once and for all: module constants with a literal value (NAME = 42, assigned once), and
/// default values of parameters (numbers and short strings other than 0, 1 and -1, of functions that are defined once).
/// In text order. Comments and strings are no code.
std::vector<CodeFact> python_facts(std::string_view text);

}  // namespace modeld
