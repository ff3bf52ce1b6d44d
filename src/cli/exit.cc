#include "cli/exit.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/report.h"

namespace modeld {

void tell(const Error& error) { fmt::print(stderr, "modeld: {}: {}\n", code_name(error.code), error.message); }

int end_with(const Error& error, bool json, std::string_view question) {
  std::fflush(stdout);
  tell(error);
  if (json) {
    fmt::print("{}\n", error_json(error, question));
    std::fflush(stdout);
  }
  return exit_status(error.code);
}

int end_of_output(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return end_with({ErrorCode::io_failed, "The output could not be written whole. See that where it goes has room.", {}},
                  false);
}

}  // namespace modeld
