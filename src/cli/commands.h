// The table of commands: each adds itself and its arguments to the parser, and gives back what runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cli/engine_entry.h"
#include "cli/prepare.h"

namespace modeld {

/// What a command gets beside its own options.
struct Invocation {
  const EngineEntry& engine;
  /// As it was typed, for reports.
  std::string command_line;
};

/// A command of the program. The option values live as long as `run`.
struct Command {
  CLI::App* parser = nullptr;
  /// Returns the exit status; errors are printed by then.
  std::function<int(const Invocation&)> run;
};

Command add_ask(CLI::App& app);
Command add_describe(CLI::App& app);
Command add_calibrate(CLI::App& app);
Command add_demo(CLI::App& app);
Command add_eval(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_requantize(CLI::App& app);

// Arguments that several commands have.
void add_model_flag(CLI::App& command, ModelChoice& choice);
void add_memory_flags(CLI::App& command, ModelChoice& choice);
void add_threads_flag(CLI::App& command, ModelChoice& choice);
void add_seed_flag(CLI::App& command, std::uint64_t& seed);

}  // namespace modeld
