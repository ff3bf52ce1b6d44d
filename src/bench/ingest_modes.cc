// How fast a text is read in each of the ways that a reading policy can name, each in a session of its own.
#include <fmt/format.h>

#include <array>

#include "base/stopwatch.h"
#include "bench/measures.h"

namespace modeld {
namespace {

struct Mode {
  std::string_view name;
  KvOrigin origin;
  std::int32_t window;
  std::int32_t run_up;
};

constexpr std::array kModes = {Mode{"streamed, window 512", KvOrigin::streamed, 512, 32},
                               Mode{"streamed, window 1k", KvOrigin::streamed, 1024, 32},
                               Mode{"streamed, window 2k", KvOrigin::streamed, 2048, 32},
                               Mode{"isolated, run-up 32", KvOrigin::isolated, 512, 32},
                               Mode{"isolated, no run-up", KvOrigin::isolated, 512, 0}};

}  // namespace

Result<std::vector<BenchRow>> bench_modes(const BenchJob& job, const StreamResult& stream) {
  std::vector<BenchRow> rows;
  double window_speed = 0.0;
  for (const Mode& mode : kModes) {
    SessionSettings settings = job.settings();
    ReadingPolicy policy = job.calibration.reading;
    policy.origin = mode.origin;
    policy.stream_window = mode.window;
    policy.run_up = mode.run_up;
    settings.reading = policy;
    // A window of 2k, and a batch behind it, need a hot set that holds them.
    settings.hot_tokens =
        std::max(settings.hot_tokens, std::min(mode.window + 1024, job.engine.geometry().trained_window));
    ColdStore store(job.store_bytes(job.options.mode_tokens));
    MODELD_TRY(const auto session, job.session(job.engine, store, settings, job.options.mode_tokens));
    const std::string stage = fmt::format("ingest modes: {}", mode.name);
    const ProgressSink named = [&](const Progress& p) { report(job.progress, stage, p.done, p.total, p.unit); };
    const Stopwatch watch;
    MODELD_TRY_VOID(session->ingest(named, job.cancel));
    const double speed = static_cast<double>(session->stream_tokens()) / watch.seconds();
    if (&mode == kModes.data()) window_speed = speed;
    rows.push_back({fmt::format("prefill {}", mode.name), speed, "tokens/s", "", {}});
  }
  // Sinks and window alone over the whole stream, and one question without retrieval: what is compared with.
  const double alone = static_cast<double>(job.options.tokens) / window_speed + stream.plain_question_seconds;
  rows.push_back({"sinks + window alone: the whole stream and one question", alone, "s", "", {}});
  rows.push_back(at_most("retrieval work of one question ÷ that",
                         (stream.retrieval_seconds - stream.plain_question_seconds) / alone, 0.25));
  rows.push_back(at_most("modeld, the whole stream and one question ÷ that",
                         (stream.ingest_seconds + stream.retrieval_seconds) / alone, 1.25));
  return rows;
}

}  // namespace modeld
