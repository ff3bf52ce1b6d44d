// How many threads compute.
#pragma once

#include <cstdint>

namespace modeld {

/// Cores that this process may run on (its affinity mask), at least 1.
std::int32_t available_cores();

/// Threads that compute: `asked`, or with 0 every core that the process may use, since waiting threads sleep
/// (barriers.h). docs/results has the measurements, with quiet cores and with busy ones.
std::int32_t thread_count(std::int32_t asked);

}  // namespace modeld
