// The worker threads of one context.
#pragma once

#include <cstdint>
#include <memory>

struct ggml_threadpool;
struct llama_context;

namespace modeld {

/// Cores that this process may run on (its affinity mask), at least 1.
std::int32_t available_cores();

/// The engine's choice where the user names none. ggml's threads meet at a barrier after every node and spin there, so
/// that on a shared core each meeting can cost a time slice. A prefill has long stretches between them and uses all
/// cores; a decode step has hundreds of short ones, and half the cores already use up the memory bandwidth that bounds
/// it.
struct ThreadCounts {
  std::int32_t prefill = 1;
  std::int32_t decode = 1;
};
/// `asked` > 0: that many for both.
ThreadCounts thread_counts(std::int32_t asked);

/// Threads that sleep between steps instead of spinning: on shared cores a spinning thread takes the time of the one
/// that it waits for. Owns the threads; must outlive the context that uses it.
class Threads {
 public:
  explicit Threads(std::int32_t count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  /// Without effect for one thread, and where the CPU backend has no pools.
  void attach(llama_context* context) const;

 private:
  ggml_threadpool* pool_ = nullptr;
};

}  // namespace modeld
