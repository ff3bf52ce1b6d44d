// A request to stop, shared between who asks and who works. Thread-safe; asking is async-signal-safe.
#pragma once

#include <atomic>

namespace modeld {

class CancelFlag {
 public:
  void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
  void clear() noexcept { requested_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace modeld
