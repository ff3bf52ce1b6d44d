#include "cli/state_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/user_directory.h"

namespace modeld {
namespace {

constexpr std::size_t kLongestName = 200;

Result<std::filesystem::path> default_directory() {
  if (const auto directory = user_directory("XDG_STATE_HOME", ".local/state")) return *directory;
  return fail(ErrorCode::bad_argument, "Neither XDG_STATE_HOME nor HOME names a directory for sessions. Give --state.");
}

}  // namespace

void add_state_flags(CLI::App& command, StateChoice& choice) {
  command
      .add_option("--state", choice.directory,
                  "Directory that keeps sessions (default: $XDG_STATE_HOME/modeld or ~/.local/state/modeld)")
      ->type_name("DIR");
  add_bytes(command, "--disk-budget", choice.disk_budget,
            "Disk that the state directory may take, e.g. 20G (default: half of what is free)");
}

Result<std::unique_ptr<State>> open_state(const StateChoice& choice) {
  std::filesystem::path directory = choice.directory;
  if (directory.empty()) {
    MODELD_TRY(directory, default_directory());
  }
  return State::open(directory, choice.disk_budget);
}

Status check_session_name(std::string_view name) {
  const bool readable =
      !name.empty() && name.size() <= kLongestName && name.front() != ' ' && name.back() != ' ' &&
      std::none_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; });
  if (readable) return {};
  return fail(ErrorCode::bad_argument,
              fmt::format("A session's name has 1 to {} bytes, no control characters, and no space at its ends.",
                          kLongestName));
}

}  // namespace modeld
