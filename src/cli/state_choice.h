// Where sessions are kept between two runs, and which of them is meant.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "store/state.h"

namespace modeld {

struct StateChoice {
  /// Empty: the default one.
  std::filesystem::path directory;
  /// 0: half of what is free.
  std::int64_t disk_budget = 0;
};

void add_state_flags(CLI::App& command, StateChoice& choice);

/// The directory that was named, or $XDG_STATE_HOME/modeld, or ~/.local/state/modeld; opened, and made if it is
/// missing. Errors: bad_argument when there is none to name, those of State::open().
Result<std::unique_ptr<State>> open_state(const StateChoice& choice);

/// Errors: bad_argument for a name that would not be readable in a list: empty, long, with control characters.
Status check_session_name(std::string_view name);

}  // namespace modeld
