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

ThreadCounts thread_counts(std::int32_t asked) {
  if (asked > 0) return {.prefill = asked, .decode = asked};
  const std::int32_t cores = std::min(available_cores(), GGML_MAX_N_THREADS);
  return {.prefill = cores, .decode = std::max(1, cores / 2)};
}

}  // namespace modeld
