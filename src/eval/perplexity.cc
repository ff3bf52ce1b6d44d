#include "eval/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/digest.h"
#include "base/stopwatch.h"
#include "eval/corpus.h"
#include "eval/dense.h"
#include "eval/modes.h"
#include "eval/statistics.h"
#include "session/sampler.h"
#include "session/stream_text.h"

namespace modeld {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
/// As much of a text as is looked at: it is tokenised as a whole.
constexpr std::size_t kTextBytes = std::size_t{4} << 20U;
/// Probes stand at least so far apart, so that none is scored twice.
constexpr std::int64_t kApart = 2 * kScoredTokens;
/// A line end is looked for in so many tokens.
constexpr std::int64_t kLineTokens = 256;
constexpr std::array<std::string_view, 3> kModes = {kDense, kOurs, kSinksRecent};

std::string name_of(const PerplexityCell& cell) {
  return fmt::format("perplexity-{}-{}-{}.json", cell.tokens, cell.mode, cell.probe);
}

Status save(const CellFolder& folder, const PerplexityCell& cell) {
  const json value = {{"format", kFormat},
                      {"mode", cell.mode},
                      {"tokens", cell.tokens},
                      {"probe", cell.probe},
                      {"parameters", cell.parameters},
                      {"nll", cell.nll},
                      {"attended_tokens", cell.attended_tokens},
                      {"prepare_seconds", cell.prepare_seconds},
                      {"seconds", cell.seconds}};
  return folder.write(name_of(cell), value.dump(1) + "\n");
}

/// The stored cell if it has the same parameters; a damaged file is as good as none.
std::optional<PerplexityCell> load(const CellFolder& folder, const PerplexityCell& wanted) {
  const std::optional<std::string> content = folder.read(name_of(wanted));
  if (!content) return std::nullopt;
  try {
    const json value = json::parse(*content);
    if (value.at("format") != kFormat || value.at("parameters") != wanted.parameters) return std::nullopt;
    PerplexityCell cell = wanted;
    value.at("nll").get_to(cell.nll);
    value.at("attended_tokens").get_to(cell.attended_tokens);
    value.at("prepare_seconds").get_to(cell.prepare_seconds);
    value.at("seconds").get_to(cell.seconds);
    if (std::cmp_not_equal(cell.nll.size(), kScoredTokens)) return std::nullopt;
    return cell;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

/// Whether a line begins at this token, so that no tokenizer joins it with what comes before.
bool begins_line(std::string_view text, std::span<const std::size_t> bytes, std::int64_t token) {
  const std::size_t byte = bytes[static_cast<std::size_t>(token)];
  return byte > 0 && byte < text.size() && text[byte - 1] == '\n' && text[byte] != '\n' && text[byte] != ' ';
}

class PerplexityRun {
 public:
  PerplexityRun(Engine& engine, const Calibration& calibration, const EvalOptions& options, const TextSink& out,
                const ProgressSink& progress, const CancelFlag* cancel)
      : engine_(engine),
        calibration_(calibration),
        options_(options),
        out_(out),
        progress_(progress),
        cancel_(cancel),
        folder_(options.output) {}

  Status run() {
    MODELD_TRY(text_, read_corpus(options_.text, kTextBytes));
    text_.resize(whole_utf8(text_));
    MODELD_TRY(offsets_, token_offsets(engine_, text_));
    MODELD_TRY(frame_, make_frame(engine_));
    std::vector<std::int64_t> lengths = options_.perplexity;
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    const std::int64_t least = 2 * kScoredTokens + static_cast<std::int64_t>(frame_.head.size());
    const auto available = static_cast<std::int64_t>(offsets_.tokens.size());
    places_ = probe_places(text_, offsets_.bytes, lengths.back(), options_.probes);
    if (lengths.front() < least || places_.empty()) {
      return fail(
          ErrorCode::bad_argument,
          fmt::format("Perplexity is measured at lengths from {} to {} tokens, which is what the text has; {} to "
                      "{} were asked for.",
                      least, available, lengths.front(), lengths.back()),
          {{"text_tokens", available}, {"needed_tokens", lengths.back()}});
    }
    for (const std::int64_t length : lengths)
      for (std::size_t probe = 0; probe < places_.size(); ++probe) MODELD_TRY_VOID(measure(length, probe));
    return {};
  }

  [[nodiscard]] const std::vector<PerplexityCell>& cells() const { return cells_; }

 private:
  [[nodiscard]] bool asked(std::string_view mode, std::int64_t length) const {
    const std::vector<std::string>& modes = options_.modes;
    if (!modes.empty() && std::find(modes.begin(), modes.end(), mode) == modes.end()) return false;
    const std::vector<std::int32_t>& dense = options_.dense_tokens;
    return mode != kDense || std::any_of(dense.begin(), dense.end(), [&](std::int32_t most) { return length <= most; });
  }

  [[nodiscard]] std::string parameters(std::string_view mode, std::string_view before) const {
    const EvalOptions& o = options_;
    std::string text = fmt::format("model={} before={} scored={}", engine_.identity().model.substr(0, 16),
                                   Hasher().text(before).finish().hex(), hash_tokens(scored_).hex());
    if (mode == kDense) return text;
    return text + fmt::format(" hot={} kv={} calibration={} reading={} cold={} embedder={}", o.hot_tokens,
                              to_text(o.kv_type), calibration_.digest().substr(0, 16),
                              policy_text(calibration_.reading), o.cold_bytes,
                              o.embedder == nullptr ? "none" : o.embedder->name());
  }

  Status measure(std::int64_t length, std::size_t probe) {
    const std::int64_t place = places_[probe];
    const std::int64_t begin = place + kScoredTokens - length + static_cast<std::int64_t>(frame_.head.size());
    scored_ =
        std::span(offsets_.tokens).subspan(static_cast<std::size_t>(place), static_cast<std::size_t>(kScoredTokens));
    std::size_t first = offsets_.bytes[static_cast<std::size_t>(begin)];
    while ((static_cast<unsigned char>(text_[first]) & 0xC0U) == 0x80U) ++first;
    const std::string before = text_.substr(first, offsets_.bytes[static_cast<std::size_t>(place)] - first);
    std::vector<PerplexityCell> missing;
    for (const std::string_view mode : kModes) {
      if (!asked(mode, length)) continue;
      PerplexityCell cell{.mode = std::string(mode),
                          .tokens = length,
                          .probe = static_cast<std::int32_t>(probe) + 1,
                          .parameters = parameters(mode, before),
                          .nll = {}};
      if (const std::optional<PerplexityCell> stored = load(folder_, cell)) {
        keep(*stored);
      } else {
        missing.push_back(std::move(cell));
      }
    }
    for (PerplexityCell& cell : missing)
      if (cell.mode == kDense) MODELD_TRY_VOID(measure_dense(cell, before));
    std::erase_if(missing, [](const PerplexityCell& cell) { return cell.mode == kDense; });
    return missing.empty() ? Status{} : measure_session(missing, before);
  }

  Status measure_dense(PerplexityCell& cell, const std::string& before) {
    StreamText stream(frame_);
    const std::array parts = {TextPart{"text", before, SegmentKind::user}};
    MODELD_TRY_VOID(stream.append(engine_, parts, cancel_));
    const std::span<const Token> context = std::span(stream.tokens()).subspan(frame_.head.size());
    const Stopwatch reading;
    MODELD_TRY(
        DenseRunner runner,
        DenseRunner::open(engine_, static_cast<std::int32_t>(context.size() + scored_.size()), options_.threads));
    MODELD_TRY_VOID(runner.extend(context.first(context.size() - 1), stage(cell), progress_, cancel_));
    cell.prepare_seconds = reading.seconds();
    std::vector<Token> scored = {context.back()};
    scored.insert(scored.end(), scored_.begin(), scored_.end());
    const Stopwatch scoring;
    MODELD_TRY(Scored result, runner.score(scored, cancel_));
    return finish(cell, std::move(result), scoring.seconds());
  }

  /// All of `cells` in one session.
  Status measure_session(std::vector<PerplexityCell>& cells, const std::string& before) {
    ColdStore store(store_bytes(engine_, options_, cells.front().tokens));
    MODELD_TRY(const std::unique_ptr<Session> session,
               Session::create(engine_, store, calibration_, session_settings(options_)));
    const std::array parts = {TextPart{"text", before, SegmentKind::user}};
    MODELD_TRY_VOID(session->append(parts, cancel_));
    const std::string name = fmt::format("perplexity, {} tokens, probe {} of {}: reading", cells.front().tokens,
                                         cells.front().probe, places_.size());
    const ProgressSink named = [&](const Progress& p) { report(progress_, name, p.done, p.total, p.unit); };
    const Stopwatch reading;
    MODELD_TRY_VOID(session->ingest(named, cancel_));
    const double seconds = reading.seconds();
    for (PerplexityCell& cell : cells) {
      cell.prepare_seconds = seconds;
      const std::string scoring_stage = stage(cell);
      const ProgressSink told = [&](const Progress& p) { report(progress_, scoring_stage, p.done, p.total, p.unit); };
      Question how;
      how.retrieve = cell.mode == kOurs;
      const Stopwatch scoring;
      MODELD_TRY(Scored result, session->score(scored_, how, told, cancel_));
      MODELD_TRY_VOID(finish(cell, std::move(result), scoring.seconds()));
    }
    return {};
  }

  [[nodiscard]] std::string stage(const PerplexityCell& cell) const {
    return fmt::format("perplexity, {} tokens, probe {} of {}: {}", cell.tokens, cell.probe, places_.size(), cell.mode);
  }

  Status finish(PerplexityCell& cell, Scored result, double seconds) {
    cell.nll = std::move(result.nll);
    cell.attended_tokens = result.attended_tokens;
    cell.seconds = seconds;
    MODELD_TRY_VOID(save(folder_, cell));
    keep(cell);
    return {};
  }

  void keep(const PerplexityCell& cell) {
    cells_.push_back(cell);
    if (out_ && !options_.json) out_(summary(cell));
  }

  Engine& engine_;
  const Calibration& calibration_;
  const EvalOptions& options_;
  const TextSink& out_;
  const ProgressSink& progress_;
  const CancelFlag* cancel_;
  CellFolder folder_;
  std::string text_;
  TokenOffsets offsets_;
  PromptFrame frame_;
  std::vector<std::int64_t> places_;
  /// Of the probe that is being measured.
  std::span<const Token> scored_;
  std::vector<PerplexityCell> cells_;
};

}  // namespace

std::vector<std::int64_t> probe_places(std::string_view text, std::span<const std::size_t> token_bytes,
                                       std::int64_t longest, std::int32_t probes) {
  const auto tokens = static_cast<std::int64_t>(token_bytes.size()) - 1;
  // A probe moves on to the next line, so the last one stands that much before the end.
  const std::int64_t last = tokens - kLineTokens;
  if (probes < 1 || last < longest) return {};
  const std::int64_t count = std::min<std::int64_t>(probes, 1 + (last - longest) / kApart);
  // Where the text allows, the ends do not depend on the lengths, so that one more length leaves the others' cells.
  const std::int64_t first = count == 1 ? last : std::max(longest, last / count);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t end = count == 1 ? last : first + (last - first) * i / (count - 1);
    const std::int64_t place = end - kScoredTokens;
    std::int64_t line = place;
    while (line < place + kLineTokens && !begins_line(text, token_bytes, line)) ++line;
    places.push_back(line < place + kLineTokens ? line : place);
  }
  return places;
}

Result<std::vector<PerplexityCell>> run_perplexity(Engine& engine, const Calibration& calibration,
                                                   const EvalOptions& options, const TextSink& out,
                                                   const ProgressSink& progress, const CancelFlag* cancel) {
  PerplexityRun run(engine, calibration, options, out, progress, cancel);
  MODELD_TRY_VOID(run.run());
  return run.cells();
}

}  // namespace modeld
