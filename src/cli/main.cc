// The composition root: the one place that knows which engines and commands there are.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "engine/llama/barriers.h"
#include "engine/llama/describe.h"
#include "engine/llama/devices.h"
#include "engine/llama/embed.h"
#include "engine/llama/memory.h"
#include "engine/llama/open.h"
#include "engine/llama/plain.h"
#include "engine/llama/requantize.h"

namespace modeld {
namespace {

EngineEntry llama_entry() {
  return {describe_llama,
          llama_devices,
          [](const ModelGeometry& geometry, std::int32_t cells) {
            return foreseen_compute_bytes(geometry, cells, ContextSpec{}.batch);
          },
          [](const std::filesystem::path& path, const ProgressSink& progress, const CancelFlag* cancel) {
            return open_llama(path, {}, progress, cancel);
          },
          open_llama_embedder,
          open_plain_llama,
          requantize_llama};
}

// --json as it was given, also where the rest of the arguments cannot be parsed.
bool asks_for_json(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc,
                     [](const char* argument) { return std::string_view(argument) == "--json"; });
}

// The arguments that no option takes, in the order in which they were typed.
std::string not_understood(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> extras = app.remaining(true);
  std::vector<std::string> typed;
  std::copy_if(argv + 1, argv + argc, std::back_inserter(typed),
               [&](const char* argument) { return std::find(extras.begin(), extras.end(), argument) != extras.end(); });
  return fmt::format("Not understood: {}. A question of several words needs quotes.", fmt::join(typed, " "));
}

int end_parsing(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const bool json = asks_for_json(argc, argv);
  // --help and --version come this way, too: with status 0.
  if (error.get_exit_code() == 0) {
    const int status = app.exit(error);
    std::cout.flush();
    return std::cout ? status : end_of_output(kExitSuccess);
  }
  std::string message = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) message = not_understood(app, argc, argv);
  std::replace(message.begin(), message.end(), '\n', ' ');
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  message += fmt::format("{}See modeld{}{} --help.", message.empty() || message.back() == '.' ? " " : ". ",
                         chosen.empty() ? "" : " ", chosen.empty() ? "" : chosen.front()->get_name());
  return end_with({ErrorCode::bad_argument, message, {}}, json);
}

int run(int argc, char** argv) {
  CLI::App app{"modeld answers questions about texts far longer than a model's window."};
  app.name("modeld");
  app.set_version_flag("--version", "modeld 0.1.0");
  app.require_subcommand(1);
  app.footer(
      "First steps:\n"
      "  modeld describe MODEL.gguf\n"
      "  modeld ask --model MODEL.gguf --file TEXT \"What is the access code?\"\n"
      "Each command has its own --help.");
  const std::vector<Command> commands = {add_ask(app),  add_describe(app), add_calibrate(app),  add_demo(app),
                                         add_eval(app), add_bench(app),    add_requantize(app), add_sessions(app)};
  const bool known = argc < 2 || argv[1][0] == '-' ||
                     std::any_of(
                         commands.begin(), commands.end(),
                         [&](const Command& command) { return command.parser->get_name() == argv[1]; });
  if (!known)
    return end_with({ErrorCode::bad_argument, fmt::format("There is no command {}. See modeld --help.", argv[1]), {}},
                    asks_for_json(argc, argv));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return end_parsing(app, error, argc, argv);
  }
  install_interrupt();
  const EngineEntry engine = llama_entry();
  const std::string command_line = fmt::format("modeld {}", fmt::join(argv + 1, argv + argc, " "));
  for (const Command& command : commands)
    if (command.parser->parsed()) return end_of_output(command.run({engine, command_line}));
  return end_with({ErrorCode::bad_argument, "No command was given. See modeld --help.", {}}, false);
}

}  // namespace
}  // namespace modeld

int main(int argc, char** argv) {
  modeld::sleep_at_barriers(argv);
  try {
    return modeld::run(argc, argv);
  } catch (const std::exception& error) {
    return modeld::end_with(
        {modeld::ErrorCode::internal, fmt::format("An unexpected exception reached the top: {}.", error.what()), {}},
        false);
  }
}
