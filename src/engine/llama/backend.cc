#include "engine/llama/backend.h"

#include <ggml-backend.h>
#include <llama.h>

#include <mutex>

namespace modeld {
namespace {

/// llama.cpp logs on the thread that called it, so that each caller finds its own errors here.
struct LogTail {
  std::uint64_t errors = 0;
  std::string last_error;
  // A message may come in several calls; the level of the first one holds for its continuations.
  bool continues_error = false;
};

LogTail& log_tail() {
  thread_local LogTail tail;
  return tail;
}

void collect(ggml_log_level level, const char* text, void* /*user_data*/) {
  LogTail& tail = log_tail();
  const bool continuation = level == GGML_LOG_LEVEL_CONT;
  if (!continuation) tail.continues_error = level == GGML_LOG_LEVEL_ERROR;
  if (!tail.continues_error) return;
  if (!continuation) {
    ++tail.errors;
    tail.last_error.clear();
  }
  tail.last_error += text;
  while (!tail.last_error.empty() && tail.last_error.back() == '\n') tail.last_error.pop_back();
}

}  // namespace

void start_llama_backend() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(collect, nullptr);
    llama_backend_init();
  });
}

std::uint64_t llama_errors_logged() { return log_tail().errors; }

std::string last_llama_error() { return log_tail().last_error.empty() ? "no further details" : log_tail().last_error; }

}  // namespace modeld
