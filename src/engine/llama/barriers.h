// How the engine's threads wait for each other.
#pragma once

namespace modeld {

/// ggml's threads meet at a barrier after every node, hundreds of times a token. OpenMP's barriers spin by default, and
/// on a core that another process wants, too, each meeting then costs a time slice (measured: 1.5 s a token instead of
/// 0.1 s). libgomp reads how to wait from the environment before main() begins, so this sets GOMP_SPINCOUNT and runs
/// the program once more — unless the user has set GOMP_SPINCOUNT or OMP_WAIT_POLICY. Call it first in main(), with
/// main's argv. Returns if nothing is to be done or the program cannot be run again.
void sleep_at_barriers(char** argv);

}  // namespace modeld
