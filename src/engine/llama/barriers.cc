#include "engine/llama/barriers.h"

#include <unistd.h>

#include <cstdlib>

namespace modeld {

void sleep_at_barriers(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", "0", 1) != 0) return;
  execv("/proc/self/exe", argv);
}

}  // namespace modeld
