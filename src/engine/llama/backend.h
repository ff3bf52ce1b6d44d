// llama.cpp's process-wide state: started once, and its log kept quiet but not lost.
//
// Thread: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>

namespace modeld {

/// Starts llama.cpp's backends at the first call and takes its log over: nothing reaches stderr, errors are remembered.
void start_llama_backend();

/// Errors logged so far on this thread. A call that returns success but logged an error did not succeed.
std::uint64_t llama_errors_logged();

/// The last error that llama.cpp logged on this thread, one line without its end; "no further details" if there was
/// none.
std::string last_llama_error();

}  // namespace modeld
