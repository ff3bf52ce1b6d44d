#include "cli/exit.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/report.h"

namespace modeld {

int end_with(const Error& error, bool json) {
  std::fflush(stdout);
  fmt::print(stderr, "modeld: {}: {}\n", code_name(error.code), error.message);
  if (json) {
    fmt::print("{}\n", error_json(error));
    std::fflush(stdout);
  }
  return exit_status(error.code);
}

}  // namespace modeld
