// Decode behind a long stream and behind a short one, token by token at the same hot size. A machine's speed drifts by
// more than they may differ, so both streams are there at once and answer in turns.
#include "bench/measures.h"

namespace modeld {
namespace {

/// Decoded for each question, with so many blocks read: enough that one slow token does not decide.
constexpr std::int32_t kDecodeTokens = 48;
constexpr std::int32_t kDecodeBlocks = 4;
constexpr int kRounds = 2;

struct Decoded {
  double milliseconds = 0.0;  // a token
  double attended = 0.0;      // tokens
};

/// A long answer, with as many blocks read whatever the stream's length.
Result<Decoded> decode(const BenchJob& job, Session& session, std::string_view text) {
  Question question;
  question.text = text;
  question.blocks = kDecodeBlocks;
  question.answer_tokens_max = kDecodeTokens;
  MODELD_TRY(const Answer answer, session.ask(question, {}, {}, job.cancel));
  return Decoded{answer.decode_ms_per_token, static_cast<double>(answer.attended_tokens)};
}

}  // namespace

Result<std::vector<BenchRow>> bench_decode(const BenchJob& job, Session& long_stream) {
  MODELD_TRY(const std::unique_ptr<Engine> engine, job.open_engine());
  ColdStore store(job.store_bytes(kShortStream));
  MODELD_TRY(const auto short_stream, job.session(*engine, store, job.settings(), kShortStream));
  MODELD_TRY_VOID(short_stream->ingest({}, job.cancel));
  std::vector<double> short_ms;
  std::vector<double> long_ms;
  std::vector<double> short_attended;
  std::vector<double> long_attended;
  std::vector<double> ratios;
  constexpr std::size_t kTurns = kRounds * kBenchQuestions.size();
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    const std::string_view text = kBenchQuestions[turn % kBenchQuestions.size()];
    MODELD_TRY(const Decoded first, decode(job, *short_stream, text));
    MODELD_TRY(const Decoded middle, decode(job, long_stream, text));
    MODELD_TRY(const Decoded last, decode(job, *short_stream, text));
    short_ms.push_back((first.milliseconds + last.milliseconds) / 2.0);
    long_ms.push_back(middle.milliseconds);
    short_attended.push_back(first.attended);
    long_attended.push_back(middle.attended);
    ratios.push_back(long_ms.back() / short_ms.back());
    report(job.progress, "decode behind a short and a long stream", turn + 1, kTurns, "turns");
  }
  return std::vector<BenchRow>{{"decode with a short stream", median(short_ms), "ms a token", "", {}},
                               {"decode with the long stream", median(long_ms), "ms a token", "", {}},
                               {"attended then, short stream", median(short_attended), "tokens", "", {}},
                               {"attended then, long stream", median(long_attended), "tokens", "", {}},
                               at_most("decode, long ÷ short stream, median of turns", median(ratios), 1.05)};
}

}  // namespace modeld
