// modeld demo: the main job on a real text, for a newcomer (eval/command.h).
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "eval/command.h"

namespace modeld {
namespace {

struct DemoChoice {
  ModelChoice choice;
  DemoOptions demo;
  bool quiet = false;
};

Status demo(DemoChoice& options, const Invocation& invocation, ProgressDisplay& display) {
  if (!std::filesystem::exists(options.demo.text))
    return fail(ErrorCode::file_missing, fmt::format("{} does not exist. Check the name.", options.demo.text.string()));
  options.choice.hot_tokens = options.choice.hot_tokens.value_or(options.demo.hot_tokens);
  MODELD_TRY(const ReadyModel model, load_model(invocation.engine, options.choice, display));
  const InterruptibleEngine interruptible(*model.engine);
  MODELD_TRY(const Calibration calibration, ready_calibration(*model.engine, options.choice, display));
  options.demo.hot_tokens = model.budget.hot_tokens;
  options.demo.kv_type = options.choice.kv_type;
  options.demo.cold_bytes = options.choice.host_budget;
  options.demo.threads = options.choice.threads;
  options.demo.embedder = model.embedder.get();
  options.demo.command = invocation.command_line;
  const TextSink out = [&display](std::string_view text) {
    display.finish();
    fmt::print("{}", text);
    std::fflush(stdout);
  };
  return run_demo(*model.engine, calibration, options.demo, out, display.sink(), &interrupt_flag());
}

}  // namespace

Command add_demo(CLI::App& app) {
  auto options = std::make_shared<DemoChoice>();
  CLI::App* command =
      app.add_subcommand("demo", "Plant facts in a long real text, and see who can answer questions about them");
  add_model_flag(*command, options->choice);
  command->add_option("--text", options->demo.text, "A long text")->required()->type_name("FILE");
  command->add_option("--tokens", options->demo.tokens, "How much of it to use (default 65536)")
      ->check(whole_number_of_at_least(1))
      ->type_name("N");
  command->add_option("--dense-tokens", options->demo.dense_tokens, "What the model alone is given (default 12288)")
      ->check(whole_number_of_at_least(1))
      ->type_name("N");
  command->add_option("--commit", options->demo.commit, "For the report's stamp")->type_name("TEXT");
  add_memory_flags(*command, options->choice);
  add_embedder_flag(*command, options->choice);
  add_seed_flag(*command, options->demo.seed);
  add_threads_flag(*command, options->choice);
  command->add_flag("--quiet", options->quiet, "No progress and no notes on stderr");
  return {command, [options](const Invocation& invocation) {
            ProgressDisplay display(progress_style(options->quiet));
            const Status status = demo(*options, invocation, display);
            display.finish();
            return status ? kExitSuccess : end_with(status.error(), false);
          }};
}

}  // namespace modeld
