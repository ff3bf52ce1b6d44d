// The engine's own library beside modeld: dense speeds by length, and what modeld adds in exact mode.
#include <fmt/format.h>

#include <algorithm>

#include "base/stopwatch.h"
#include "bench/measures.h"
#include "session/frame.h"

namespace modeld {
namespace {

constexpr std::int32_t kDecode = 24;
constexpr std::int64_t kExactTokens = 2048;
constexpr int kRounds = 3;
constexpr std::string_view kQuestion = "Tell me at length what happens in this text.";

Result<double> decode_seconds(PlainModel& plain, std::int32_t count) {
  const Stopwatch watch;
  for (std::int32_t i = 0; i < count; ++i) {
    const Token token = plain.greedy();
    MODELD_TRY_VOID(plain.compute(std::span(&token, 1)));
  }
  return watch.seconds();
}

Result<std::vector<BenchRow>> by_length(const BenchJob& job, PlainModel& plain) {
  std::vector<BenchRow> rows;
  std::vector<std::int32_t> lengths = job.options.plain_tokens;
  std::sort(lengths.begin(), lengths.end());
  const std::span<const Token> all(job.offsets.tokens);
  for (const std::int32_t length : lengths) {
    const auto tokens = static_cast<std::size_t>(length);
    if (tokens > all.size()) continue;
    // A context of its own for each length: the cost of a token depends on the cells that there are.
    MODELD_TRY_VOID(plain.open_context(length + 256, job.options.threads));
    const std::string stage = fmt::format("plain, dense at {} tokens", length);
    const Stopwatch watch;
    for (std::size_t done = 0; done < tokens;) {
      if (job.cancel != nullptr && job.cancel->requested()) return fail(ErrorCode::cancelled, "Cancelled.");
      const std::size_t size = std::min<std::size_t>(512, tokens - done);
      MODELD_TRY_VOID(plain.compute(all.subspan(done, size)));
      done += size;
      report(job.progress, stage, done, tokens, "tokens");
    }
    const double prefill = watch.seconds();
    MODELD_TRY(const double decode, decode_seconds(plain, kDecode));
    rows.push_back(
        {fmt::format("plain dense prefill of {}", length), static_cast<double>(length) / prefill, "tokens/s", "", {}});
    rows.push_back({fmt::format("plain dense decode at {}", length), decode * 1e3 / kDecode, "ms a token", "", {}});
  }
  plain.close_context();
  return rows;
}

/// Seconds of modeld in exact mode for text, question and answer; and the tokens of the prompt.
struct Exact {
  double seconds = 0.0;
  std::vector<Token> stream;
  std::size_t answer_tokens = 0;
};

Result<Exact> exact_turn(const BenchJob& job) {
  ColdStore store(job.store_bytes(kExactTokens));
  SessionSettings settings = job.settings();
  settings.context = ContextMode::exact;
  settings.hot_tokens = job.engine.geometry().trained_window;
  MODELD_TRY(const auto session, job.session(job.engine, store, settings, kExactTokens));
  Question question;
  question.text = kQuestion;
  question.answer_tokens_max = kDecode;
  const Stopwatch watch;
  MODELD_TRY(const Answer answer, session->ask(question, {}, {}, job.cancel));
  return Exact{watch.seconds(), session->stream(), answer.tokens.size()};
}

/// The same prompt, in the same passes, through the plain library.
Result<double> plain_turn(const BenchJob& job, PlainModel& plain, const Exact& exact, std::span<const Token> question,
                          std::int32_t cells) {
  const Stopwatch watch;
  MODELD_TRY_VOID(plain.open_context(cells, job.options.threads));
  MODELD_TRY_VOID(plain.compute(exact.stream));
  MODELD_TRY_VOID(plain.compute(question));
  // The last token is decided and not computed.
  MODELD_TRY_VOID(decode_seconds(plain, static_cast<std::int32_t>(exact.answer_tokens) - 1));
  static_cast<void>(plain.greedy());
  return watch.seconds();
}

Result<std::vector<BenchRow>> exact_overhead(const BenchJob& job, PlainModel& plain) {
  MODELD_TRY(const PromptFrame frame, make_frame(job.engine));
  MODELD_TRY(std::vector<Token> question, job.engine.tokenize(frame.before_question, false, false));
  MODELD_TRY(const std::vector<Token> content, job.engine.tokenize(kQuestion, false, false));
  question.insert(question.end(), content.begin(), content.end());
  question.insert(question.end(), frame.after_question.begin(), frame.after_question.end());
  double ours = 0.0;
  double theirs = 0.0;
  for (int round = 0; round < kRounds; ++round) {
    MODELD_TRY(const Exact exact, exact_turn(job));
    const std::int32_t cells = job.engine.context().cells;
    MODELD_TRY(const double seconds, plain_turn(job, plain, exact, question, cells));
    ours = round == 0 ? exact.seconds : std::min(ours, exact.seconds);
    theirs = round == 0 ? seconds : std::min(theirs, seconds);
    report(job.progress, "exact mode beside plain", static_cast<std::uint64_t>(round) + 1, kRounds, "rounds");
  }
  plain.close_context();
  std::vector<BenchRow> rows;
  rows.push_back({fmt::format("exact mode: {} tokens and {} decoded", kExactTokens, kDecode), ours, "s", "", {}});
  rows.push_back({"plain: the same", theirs, "s", "", {}});
  rows.push_back(at_most("exact mode ÷ plain", ours / theirs, 1.03));
  return rows;
}

}  // namespace

Result<std::vector<BenchRow>> bench_plain(const BenchJob& job, PlainModel& plain) {
  MODELD_TRY(std::vector<BenchRow> rows, by_length(job, plain));
  MODELD_TRY(std::vector<BenchRow> exact, exact_overhead(job, plain));
  rows.insert(rows.end(), exact.begin(), exact.end());
  return rows;
}

}  // namespace modeld
