// modeld requantize: a copy of a model in a weight format that this machine computes faster.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/exit.h"

namespace modeld {

Command add_requantize(CLI::App& app) {
  struct Options {
    std::string from;
    std::string to;
    std::string format = "q8_0";
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("requantize", "Copy a model into a weight format with faster kernels");
  command->add_option("MODEL", options->from, "The model, a GGUF file")->required();
  command->add_option("COPY", options->to, "The file to write")->required();
  command->add_option("--format", options->format,
                      "q8_0, q4_0, bf16 or f16 (default q8_0, which loses next to nothing)");
  return {command, [options](const Invocation& invocation) {
            const Status done = invocation.engine.requantize(options->from, options->to, options->format);
            if (!done) return end_with(done.error(), false);
            fmt::print("{} is written in {}.\n", options->to, options->format);
            return 0;
          }};
}

}  // namespace modeld
