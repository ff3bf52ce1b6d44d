// Ctrl-C: the first one asks everything to stop cleanly, the second ends the process.
#pragma once

#include "base/cancel.h"
#include "engine/engine.h"

namespace modeld {

/// The process's one cancel flag, requested by SIGINT and SIGTERM once install_interrupt() was called.
CancelFlag& interrupt_flag();

/// Thread: call once, before other threads start.
void install_interrupt();

/// While it lives, an interrupt also stops the engine's running computation. One at a time; the engine must outlive it.
class InterruptibleEngine {
 public:
  explicit InterruptibleEngine(Engine& engine);
  ~InterruptibleEngine();
  InterruptibleEngine(const InterruptibleEngine&) = delete;
  InterruptibleEngine& operator=(const InterruptibleEngine&) = delete;
};

}  // namespace modeld
