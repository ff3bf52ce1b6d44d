#include "base/error.h"

#include <fmt/format.h>

#include <array>

namespace modeld {
namespace {

struct Row {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array kRows = {
#define MODELD_X(name, text) Row{#name, text},
    MODELD_ERROR_CODES(MODELD_X)
#undef MODELD_X
};

}  // namespace

std::string_view code_name(ErrorCode code) { return kRows.at(static_cast<std::size_t>(code)).name; }

std::string_view code_meaning(ErrorCode code) { return kRows.at(static_cast<std::size_t>(code)).meaning; }

int exit_status(ErrorCode code) {
  if (code == ErrorCode::cancelled) return 130;
  if (code <= ErrorCode::context_overflow) return 2;
  if (code <= ErrorCode::unsupported_operation) return 3;
  if (code <= ErrorCode::io_failed) return 4;
  return 1;
}

std::string to_text(const Error& error) {
  std::string text = fmt::format("{}: {}", code_name(error.code), error.message);
  const char* separator = " (";
  for (const auto& [name, value] : error.numbers) {
    text += fmt::format("{}{}={}", separator, name, value);
    separator = ", ";
  }
  if (!error.numbers.empty()) text += ")";
  return text;
}

}  // namespace modeld
