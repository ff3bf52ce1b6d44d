// How many threads compute.
#pragma once

#include <cstdint>

namespace modeld {

/// Cores that this process may run on (its affinity mask), at least 1.
std::int32_t available_cores();

/// The engine's choice where the user names none. A prefill has long stretches of work between two barriers and uses
/// all cores. A decode step has hundreds of short ones: waking a sleeping thread (barriers.h) then costs more than a
/// second core brings, and half the cores nearly use up the memory bandwidth that bounds it. docs/results/threads.md
/// has the measurements.
struct ThreadCounts {
  std::int32_t prefill = 1;
  std::int32_t decode = 1;
};
/// `asked` > 0: that many for both.
ThreadCounts thread_counts(std::int32_t asked);

}  // namespace modeld
