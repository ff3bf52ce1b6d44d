// The one table of error codes, and the value that carries an error between modules.
//
// What:      every failure that a user, a client or a caller can meet has a stable code here. The code's name is part
//            of the command line's and the API's contract: it is never renamed, only added to.
// Thread:    values; free of shared state.
// Invariant: no exception crosses a module. A module that calls a throwing library converts at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace modeld {

// clang-format off
#define MODELD_ERROR_CODES(X)                                                                            \
  /* what the user gave */                                                                               \
  X(bad_argument,              "an argument is missing, malformed or out of range")                      \
  X(file_missing,              "a named file or directory does not exist or cannot be read")             \
  X(text_empty,                "the input holds no text")                                                \
  X(text_binary,               "the input is not text")                                                  \
  X(text_encoding,             "the text's encoding could not be determined or converted")               \
  X(text_too_large,            "the text needs more memory than the host budget allows")                 \
  X(question_too_long,         "the question does not fit the hot set")                                  \
  X(pinned_too_large,          "pinned text is larger than the share of the hot set it may take")        \
  X(session_missing,           "no session has this name")                                               \
  X(session_exists,            "a session has this name already")                                        \
  X(context_overflow,          "the prompt does not fit and exact mode was asked for")                   \
  /* the model */                                                                                        \
  X(model_not_gguf,            "the file is not a GGUF model")                                           \
  X(model_truncated,           "the model file is shorter than its own tables say")                      \
  X(model_load_failed,         "the engine could not load the model")                                    \
  X(unsupported_recurrent,     "recurrent and hybrid models have no KV to park")                         \
  X(unsupported_encoder,       "encoder models do not generate")                                         \
  X(unsupported_geometry,      "the model's attention geometry is one that modeld cannot move in blocks") \
  X(unsupported_kv_type,       "this KV type cannot be used with this model")                            \
  X(unsupported_operation,     "the engine cannot do this for this model")                               \
  /* capacity */                                                                                         \
  X(hot_too_small,             "the hot set is too small to hold sinks, window, question and answer")    \
  X(hot_too_large,             "the hot set is larger than the trained window or the free memory")       \
  X(device_budget_exceeded,    "the device has not enough free memory")                                  \
  X(host_budget_exceeded,      "the host budget of the cold store is used up")                           \
  X(disk_budget_exceeded,      "the disk budget of the cold store is used up")                           \
  X(state_locked,              "another process uses this state directory")                              \
  X(disk_full,                 "the disk has no room")                                                   \
  X(io_failed,                 "reading or writing a file failed")                                       \
  /* the engine's contract */                                                                            \
  X(engine_misuse,             "an engine call broke the contract; nothing was changed")                 \
  X(engine_no_cells,           "no free KV cells are left")                                              \
  X(engine_failed,             "the engine failed in the middle of an operation")                        \
  X(engine_poisoned,           "the engine failed earlier; its context must be opened again")            \
  X(payload_invalid,           "a KV payload is damaged or was made under another identity")             \
  X(state_damaged,             "the state directory holds something that is not as it was written")      \
  X(cancelled,                 "the operation was cancelled")                                            \
  X(calibration_failed,        "no retrieval head could be found for this model")                        \
  X(internal,                  "a bug in modeld")
// clang-format on

enum class ErrorCode : std::uint8_t {
#define MODELD_X(name, text) name,
  MODELD_ERROR_CODES(MODELD_X)
#undef MODELD_X
};

/// The stable name, e.g. "hot_too_small".
std::string_view code_name(ErrorCode code);
/// What the code means in general, one clause without a full stop.
std::string_view code_meaning(ErrorCode code);
/// The process exit status for a command that ends with this code: 2 for what the user gave, 3 for the model,
/// 4 for capacity, 130 for cancelled, 1 for all others. Never 0.
int exit_status(ErrorCode code);

/// A number that belongs to an error: {"needed_bytes", 123}. Names end in their unit.
using ErrorNumber = std::pair<std::string, std::int64_t>;

struct Error {
  ErrorCode code = ErrorCode::internal;
  /// One or two sentences for the person: what happened, and what to do next. Starts with a capital, ends with a stop.
  std::string message;
  /// The numbers in the sentence, for programs.
  std::vector<ErrorNumber> numbers;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::vector<ErrorNumber> numbers = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(numbers)});
}

/// "hot_too_small: The hot set ... (needed_tokens=900, hot_tokens=512)" — for logs and stderr.
std::string to_text(const Error& error);

}  // namespace modeld

// A declaration and the name of a variable cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
/// Propagates an error: MODELD_TRY(auto x, f()) declares x; MODELD_TRY_VOID(f()) for Status.
#define MODELD_CONCAT_INNER(a, b) a##b
#define MODELD_CONCAT(a, b) MODELD_CONCAT_INNER(a, b)
#define MODELD_TRY_IMPL(tmp, decl, expr)                   \
  auto tmp = (expr);                                       \
  if (!tmp) return tl::unexpected(std::move(tmp).error()); \
  decl = std::move(*tmp)
#define MODELD_TRY(decl, expr) MODELD_TRY_IMPL(MODELD_CONCAT(modeld_try_, __LINE__), decl, expr)
#define MODELD_TRY_VOID(expr)                                      \
  do {                                                             \
    if (auto modeld_try_status = (expr); !modeld_try_status)       \
      return tl::unexpected(std::move(modeld_try_status).error()); \
  } while (false)
// NOLINTEND(bugprone-macro-parentheses)
