// What an answer looks like: a plain report for people, one object for programs.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "session/session.h"

namespace modeld {

/// The passages used (file, lines, score) and the numbers of the turn, several lines, ending in a line end.
std::string answer_report(const Answer& answer);

/// One JSON object on one line, with every field of the command's contract. `question` is added when not empty.
std::string answer_json(const Answer& answer, std::string_view question);

/// {"error": {"code", "message", "numbers"}} on one line. `question` is added when not empty.
std::string error_json(const Error& error, std::string_view question = "");

}  // namespace modeld
