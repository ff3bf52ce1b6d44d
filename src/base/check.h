// CHECK for broken invariants: always on, crashes loudly with the place and the reason.
// Never used on user input or on data read from outside: those become error values.
#pragma once

namespace modeld {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define MODELD_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::modeld::check_failed(#condition, __FILE__, __LINE__))
