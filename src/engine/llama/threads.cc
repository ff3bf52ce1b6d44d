#include "engine/llama/threads.h"

#include <ggml.h>
#include <sched.h>

#include <algorithm>

namespace modeld {

std::int32_t available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::int32_t thread_count(std::int32_t asked) {
  return asked > 0 ? asked : std::min(available_cores(), GGML_MAX_N_THREADS);
}

}  // namespace modeld
