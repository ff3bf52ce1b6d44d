// The table of commands: each adds itself and its arguments to the parser, and gives back what runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
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
Command add_sessions(CLI::App& app);

// What a number must be, said in words where it is not.
CLI::Validator whole_number(std::int64_t low, std::int64_t high);
CLI::Validator whole_number_of_at_least(std::int64_t low);
CLI::Validator number_between(double low, double high);

/// An option whose value is one of some names.
template <typename Value>
CLI::Option* add_choice(CLI::App& command, const std::string& name, Value& value,
                        const std::map<std::string, Value>& choices, const std::string& description) {
  const auto choose = [name, &value, choices](const std::string& text) {
    const auto chosen = choices.find(text);
    if (chosen == choices.end()) {
      std::string names;
      for (const auto& choice : choices) names += (names.empty() ? "" : ", ") + choice.first;
      throw CLI::ValidationError(name, text + " is none of " + names + ".");
    }
    value = chosen->second;
  };
  return command.add_option_function<std::string>(name, choose, description);
}

/// An option that is a number of bytes, such as 800M or 4G; `value` stays as it is where it is not given.
CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::int64_t& value, const std::string& description);

// Arguments that several commands have.
void add_model_flag(CLI::App& command, ModelChoice& choice);
void add_memory_flags(CLI::App& command, ModelChoice& choice);
void add_embedder_flag(CLI::App& command, ModelChoice& choice);
void add_follow_flag(CLI::App& command, std::int32_t& follow);
void add_threads_flag(CLI::App& command, ModelChoice& choice);
void add_seed_flag(CLI::App& command, std::uint64_t& seed);

}  // namespace modeld
