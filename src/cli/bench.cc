// modeld bench: speeds, as ratios within one run (bench/command.h).
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "bench/command.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

namespace modeld {
namespace {

struct BenchChoice {
  ModelChoice choice;
  BenchOptions bench;
  bool with_plain = true;
  bool quiet = false;
};

Status bench(BenchChoice& options, const Invocation& invocation, ProgressDisplay& display) {
  if (!std::filesystem::exists(options.bench.text))
    return fail(ErrorCode::file_missing,
                fmt::format("{} does not exist. Check the name.", options.bench.text.string()));
  options.choice.hot_tokens = options.choice.hot_tokens.value_or(options.bench.hot_tokens);
  MODELD_TRY(const ReadyModel model, load_model(invocation.engine, options.choice, display));
  const InterruptibleEngine interruptible(*model.engine);
  MODELD_TRY(const Calibration calibration, ready_calibration(*model.engine, options.choice, display));
  options.bench.hot_tokens = model.budget.hot_tokens;
  options.bench.kv_type = options.choice.kv_type;
  options.bench.cold_bytes = options.choice.host_budget;
  options.bench.threads = options.choice.threads;
  options.bench.command = invocation.command_line;
  const OpenEngine open_engine = [&] { return invocation.engine.open(options.choice.model, {}, &interrupt_flag()); };
  OpenPlain open_plain;
  if (options.with_plain) open_plain = [&] { return invocation.engine.open_plain(options.choice.model); };
  const TextSink out = [&display](std::string_view text) {
    display.finish();
    fmt::print("{}", text);
    std::fflush(stdout);
  };
  return run_bench(*model.engine, open_engine, open_plain, calibration, options.bench, out, display.sink(),
                   &interrupt_flag());
}

}  // namespace

Command add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchChoice>();
  CLI::App* command = app.add_subcommand("bench", "Measure speed by depth and length, beside the engine's own library");
  add_model_flag(*command, options->choice);
  command->add_option("--text", options->bench.text, "A long text")->required()->type_name("FILE");
  command->add_option("--tokens", options->bench.tokens, "How much of it to use (default 65536)")
      ->check(whole_number_of_at_least(1))
      ->type_name("N");
  command->add_flag("!--no-plain", options->with_plain, "Leave out what needs the engine's own library");
  command->add_option("--output", options->bench.output, "Write bench.md and bench.json here")->type_name("DIRECTORY");
  command->add_option("--commit", options->bench.commit, "For the report's stamp")->type_name("TEXT");
  add_memory_flags(*command, options->choice);
  add_threads_flag(*command, options->choice);
  command->add_flag("--quiet", options->quiet, "No progress and no notes on stderr");
  return {command, [options](const Invocation& invocation) {
            ProgressDisplay display(progress_style(options->quiet));
            const Status status = bench(*options, invocation, display);
            display.finish();
            return status ? kExitSuccess : end_with(status.error(), false);
          }};
}

}  // namespace modeld
