// modeld requantize: a copy of a model in a weight format that this machine computes faster.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cli/commands.h"
#include "cli/exit.h"

namespace modeld {
namespace {

Status check_target(const std::filesystem::path& path, bool force) {
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(path, error);
  if (!std::filesystem::exists(there)) return {};
  if (!std::filesystem::is_regular_file(there))
    return fail(ErrorCode::bad_argument, fmt::format("{} is no ordinary file. Name a file to write.", path.string()));
  if (force) return {};
  return fail(ErrorCode::bad_argument,
              fmt::format("{} is there already. Name another file, or replace it with --force.", path.string()));
}

}  // namespace

Command add_requantize(CLI::App& app) {
  struct Options {
    std::string from;
    std::string to;
    std::string format = "q8_0";
    bool force = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("requantize", "Copy a model into a weight format with faster kernels");
  command->add_option("MODEL", options->from, "The model, a GGUF file")->required();
  command->add_option("COPY", options->to, "The file to write")->required();
  command->add_option("--format", options->format,
                      "q8_0, q4_0, bf16 or f16 (default q8_0, which loses next to nothing)");
  command->add_flag("--force", options->force, "Replace a file that is there");
  return {command, [options](const Invocation& invocation) {
            if (const Status free = check_target(options->to, options->force); !free)
              return end_with(free.error(), false);
            const Status done = invocation.engine.requantize(options->from, options->to, options->format);
            if (!done) return end_with(done.error(), false);
            fmt::print("{} is written in {}.\n", options->to, options->format);
            return 0;
          }};
}

}  // namespace modeld
