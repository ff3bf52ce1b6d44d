// modeld eval: the recall and answer tables (eval/command.h).
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

struct EvalChoice {
  ModelChoice choice;
  EvalOptions eval;
  bool quiet = false;
};

Status evaluate(EvalChoice& options, const Invocation& invocation, ProgressDisplay& display) {
  for (const std::filesystem::path& path : {options.eval.text, options.eval.code, options.eval.python})
    if (!path.empty() && !std::filesystem::exists(path))
      return fail(ErrorCode::file_missing, fmt::format("{} does not exist. Check the name.", path.string()));
  options.choice.hot_tokens = options.choice.hot_tokens.value_or(options.eval.hot_tokens);
  MODELD_TRY(const ReadyModel model, load_model(invocation.engine, options.choice, display));
  const InterruptibleEngine interruptible(*model.engine);
  MODELD_TRY(const Calibration calibration, ready_calibration(*model.engine, options.choice, display));
  options.eval.hot_tokens = model.budget.hot_tokens;
  options.eval.kv_type = options.choice.kv_type;
  options.eval.cold_type = options.choice.cold_type;
  options.eval.cold_bytes = options.choice.host_budget;
  options.eval.threads = options.choice.threads;
  options.eval.embedder = model.embedder.get();
  options.eval.command = invocation.command_line;
  const TextSink out = [&display](std::string_view text) {
    display.finish();
    fmt::print("{}", text);
    std::fflush(stdout);
  };
  return run_eval(*model.engine, calibration, options.eval, out, display.sink(), &interrupt_flag());
}

void add_task_flags(CLI::App& command, EvalOptions& eval) {
  command.add_option("--text", eval.text, "Prose: a file")->type_name("FILE");
  command.add_option("--code", eval.code, "Source code: a directory")->type_name("DIRECTORY");
  command.add_option("--python", eval.python, "Python source, asked about what it states itself: a directory")
      ->type_name("DIRECTORY");
  command.add_option("--tokens", eval.tokens, "Length of each text (default 65536)")
      ->check(whole_number_of_at_least(1))
      ->type_name("N");
  command.add_option("--texts", eval.texts, "Texts of each corpus, planted with other seeds (default 1)")
      ->check(whole_number_of_at_least(1))
      ->type_name("N");
  command
      .add_option("--kinds", eval.kinds,
                  "Facts planted into text and code: some of single, lookalike, paraphrase (the default), unrelated, "
                  "number, uuid, values, queries, chain, update, earlier")
      ->type_name("KIND");
  command.add_option("--questions", eval.questions, "Questions a kind and text (default 52; 0: none)")
      ->check(whole_number_of_at_least(0))
      ->type_name("N");
  command.add_flag("--pairs", eval.pairs, "Texts of nothing but keys and values, too: UUIDs in JSON, numbers by name");
  command.add_flag("--noise", eval.noise, "Texts of repeated filler with numbers and chains of variables, too");
  command.add_flag("--words", eval.words,
                   "Lists of words, too: which are the most common? (a question about the whole text)");
  command.add_option("--passkeys", eval.passkeys, "Texts with a pass key in repeated filler (default 10; 0: none)")
      ->check(whole_number_of_at_least(0))
      ->type_name("N");
  command.add_option("--dense-tokens", eval.dense_tokens, "Lengths for the model alone (default 12288 16384)")
      ->check(whole_number_of_at_least(1))
      ->type_name("N");
  command.add_option("--dense-questions", eval.dense_questions, "Questions for the model alone (default 20)")
      ->check(whole_number_of_at_least(1))
      ->type_name("N");
  command
      .add_option("--modes", eval.modes,
                  "Some of fresh, ours, map, sinks+recent, truncated, dense, oracle (default: all)")
      ->type_name("MODE");
  add_follow_flag(command, eval.follow);
  command.add_option("--returns", eval.reread.returns, "How often an answer may go back for another block (default 0)")
      ->check(whole_number_of_at_least(0))
      ->type_name("N");
  command.add_option("--margin", eval.reread.margin, "By how much a block must win for that (default 1.5)")
      ->check(number_between(0.01, 1000.0))
      ->type_name("X");
  command
      .add_option("--free-questions", eval.free_questions,
                  "Questions a kind that are also answered without a forced prefix (default 20; 0: none)")
      ->check(whole_number_of_at_least(0))
      ->type_name("N");
}

void add_perplexity_flags(CLI::App& command, EvalOptions& eval) {
  command
      .add_option("--perplexity", eval.perplexity,
                  "Lengths at which the perplexity of --text is measured, as 8192 16384 (default: none); with "
                  "--questions 0 --passkeys 0 nothing else is")
      ->check(whole_number_of_at_least(1))
      ->type_name("N");
  command.add_option("--probes", eval.probes, "Places of the text where perplexity is measured (default 4)")
      ->check(whole_number_of_at_least(1))
      ->type_name("N");
}

}  // namespace

Command add_eval(CLI::App& app) {
  auto options = std::make_shared<EvalChoice>();
  options->eval.output = "modeld-eval";
  CLI::App* command = app.add_subcommand("eval", "Measure recall and answers beside the model alone; resumable");
  add_model_flag(*command, options->choice);
  add_task_flags(*command, options->eval);
  add_perplexity_flags(*command, options->eval);
  command->add_option("--output", options->eval.output, "Where results are kept (default ./modeld-eval)")
      ->type_name("DIRECTORY");
  command->add_option("--commit", options->eval.commit, "For the report's stamp")->type_name("TEXT");
  add_memory_flags(*command, options->choice);
  add_embedder_flag(*command, options->choice);
  add_seed_flag(*command, options->eval.seed);
  add_threads_flag(*command, options->choice);
  command->add_flag("--json", options->eval.json, "Print the scores as one JSON object, and nothing else on stdout");
  command->add_flag("--quiet", options->quiet, "No progress and no notes on stderr");
  return {command, [options](const Invocation& invocation) {
            ProgressDisplay display(progress_style(options->quiet));
            const Status status = evaluate(*options, invocation, display);
            display.finish();
            return status ? kExitSuccess : end_with(status.error(), options->eval.json);
          }};
}

}  // namespace modeld
