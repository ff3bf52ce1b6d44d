#include "cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "base/check.h"

namespace modeld {
namespace {

std::atomic<Engine*> running_engine{nullptr};
static_assert(std::atomic<Engine*>::is_always_lock_free);

void on_signal(int) {
  if (interrupt_flag().requested()) _exit(exit_status(ErrorCode::cancelled));
  interrupt_flag().request();
  // Engine::cancel() may be called from a signal handler.
  if (Engine* engine = running_engine.load()) engine->cancel();
}

}  // namespace

CancelFlag& interrupt_flag() {
  static CancelFlag flag;
  return flag;
}

void install_interrupt() {
  interrupt_flag().clear();
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a read from a terminal or a pipe ends, too.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) MODELD_CHECK(sigaction(number, &action, nullptr) == 0);
}

InterruptibleEngine::InterruptibleEngine(Engine& engine) {
  MODELD_CHECK(running_engine.exchange(&engine) == nullptr);
  if (interrupt_flag().requested()) engine.cancel();
}

InterruptibleEngine::~InterruptibleEngine() { running_engine.store(nullptr); }

}  // namespace modeld
