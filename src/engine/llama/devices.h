// Free and total memory of the host and of the accelerators that llama.cpp can use.
#pragma once

#include <vector>

#include "base/error.h"
#include "plan/budget.h"

namespace modeld {

/// The host first, accelerators after it, as they are at this moment. Host memory that is free is what the kernel says
/// can be had without swapping (MemAvailable), bounded by the limit of the process's control group.
/// Errors: io_failed where /proc/meminfo cannot be read.
Result<std::vector<DeviceMemory>> llama_devices();

}  // namespace modeld
