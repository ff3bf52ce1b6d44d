// How a command ends: the exit status, and the one form that errors have.
//
// Contract: every error is one line on stderr, "modeld: <code>: <sentence>", and with --json also one object on stdout,
//           {"error": {"code", "message", "numbers"}}. Exit statuses are those of exit_status(): 0 only for success.
#pragma once

#include <string_view>

#include "base/error.h"

namespace modeld {

inline constexpr int kExitSuccess = 0;

/// Prints the error's line, for what went wrong and ends nothing.
void tell(const Error& error);
/// Prints the error and returns its exit status. `question`: which of several it belongs to; none if empty.
int end_with(const Error& error, bool json, std::string_view question = "");
/// `status`, or that of an error that is told, if not all output could be written.
int end_of_output(int status);

}  // namespace modeld
