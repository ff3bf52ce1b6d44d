#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/stopwatch.h"
#include "bench/command.h"
#include "bench/measures.h"
#include "eval/cells.h"
#include "eval/machine.h"

namespace modeld {
namespace {

constexpr std::size_t kBytesPerToken = 8;
constexpr std::int64_t kLeastTokens = 28672;

std::string line(const BenchRow& row) {
  const std::string verdict = !row.met ? "" : *row.met ? " – met" : " – NOT met";
  return fmt::format("| {} | {:.3g} | {} | {}{} |\n", row.name, row.value, row.unit, row.bound, verdict);
}

std::string to_json(const std::vector<BenchRow>& rows, const MachineStamp& stamp) {
  nlohmann::json value = {
      {"format", 1},        {"cpu", stamp.cpu},       {"cores", stamp.cores},    {"memory_bytes", stamp.memory_bytes},
      {"date", stamp.date}, {"commit", stamp.commit}, {"command", stamp.command}};
  value["rows"] = nlohmann::json::array();
  for (const BenchRow& row : rows) {
    nlohmann::json one = {{"name", row.name}, {"value", row.value}, {"unit", row.unit}, {"bound", row.bound}};
    if (row.met) one["met"] = *row.met;
    value["rows"].push_back(std::move(one));
  }
  return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

class BenchRun {
 public:
  BenchRun(const BenchJob& job, const OpenPlain& open_plain, const TextSink& out)
      : job_(job), open_plain_(open_plain), out_(out) {}

  Status run() {
    MODELD_TRY(StreamResult stream, bench_stream(job_));
    keep(std::move(stream.rows));
    MODELD_TRY(std::vector<BenchRow> modes, bench_modes(job_, stream));
    keep(std::move(modes));
    job_.engine.close_context();
    if (!open_plain_) return {};
    MODELD_TRY(const std::unique_ptr<PlainModel> plain, open_plain_());
    MODELD_TRY(std::vector<BenchRow> rows, bench_plain(job_, *plain));
    keep(std::move(rows));
    return {};
  }

  [[nodiscard]] const std::vector<BenchRow>& rows() const { return rows_; }

 private:
  void keep(std::vector<BenchRow> rows) {
    for (BenchRow& row : rows) {
      if (out_) out_(line(row));
      rows_.push_back(std::move(row));
    }
  }

  const BenchJob& job_;
  const OpenPlain& open_plain_;
  const TextSink& out_;
  std::vector<BenchRow> rows_;
};

}  // namespace

Status run_bench(Engine& engine, const OpenEngine& open_engine, const OpenPlain& open_plain,
                 const Calibration& calibration, const BenchOptions& options, const TextSink& out,
                 const ProgressSink& progress, const CancelFlag* cancel) {
  if (options.tokens < kLeastTokens || options.mode_tokens < 1024 || options.mode_tokens > options.tokens) {
    return fail(
        ErrorCode::bad_argument,
        fmt::format("The long stream needs at least {} tokens, ingest modes between 1024 and that.", kLeastTokens),
        {{"tokens", options.tokens}, {"mode_tokens", options.mode_tokens}, {"least_tokens", kLeastTokens}});
  }
  const Stopwatch watch;
  MODELD_TRY(const std::string corpus,
             read_corpus(options.text, static_cast<std::size_t>(options.tokens) * kBytesPerToken));
  MODELD_TRY(const TokenOffsets offsets, token_offsets(engine, corpus));
  if (static_cast<std::int64_t>(offsets.tokens.size()) < options.tokens) {
    return fail(ErrorCode::bad_argument, "The text is too short; name a longer one, or ask for fewer tokens.",
                {{"text_tokens", static_cast<std::int64_t>(offsets.tokens.size())}, {"needed_tokens", options.tokens}});
  }
  const BenchJob job{engine, open_engine, calibration, options, corpus, offsets, progress, cancel};
  BenchRun run(job, open_plain, out);
  Status status = run.run();
  engine.close_context();
  if (!status) return status;
  const MachineStamp stamp = machine_stamp(options.commit, options.command);
  std::string report = fmt::format(
      "# Benchmark\n\n{}- Model: {}; a stream of {} tokens, hot set {}, {} KV; took {:.0f} s\n\n"
      "| what | value | unit | bound |\n|---|---|---|---|\n",
      to_markdown(stamp), engine.geometry().name, options.tokens, options.hot_tokens, to_text(options.kv_type),
      watch.seconds());
  for (const BenchRow& row : run.rows()) report += line(row);
  if (out) out("\n" + report);
  if (options.output.empty()) return {};
  const CellFolder folder(options.output);
  MODELD_TRY_VOID(folder.write("bench.md", report));
  return folder.write("bench.json", to_json(run.rows(), stamp));
}

}  // namespace modeld
