#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace modeld {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "modeld: a broken invariant: %s at %s:%d. This is a bug; please report it.\n", condition, file,
               line);
  std::abort();
}

}  // namespace modeld
