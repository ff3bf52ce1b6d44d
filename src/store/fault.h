// Where a write can fail or the process can die, by name: tests inject both there.
#pragma once

#include <cstdint>
#include <functional>

namespace modeld {

enum class FaultPoint : std::uint8_t { create, write, rename, sync, sync_directory, remove, commit, read };

/// Called before each such step: the errno to fail with, or 0 to go on. It may also end the process.
using FaultHook = std::function<int(FaultPoint)>;

/// For tests; an empty hook ends it. Not while another thread writes.
void set_fault_hook(FaultHook hook);

/// The errno that the hook wants here; 0 without a hook.
int fault_at(FaultPoint point);

}  // namespace modeld
