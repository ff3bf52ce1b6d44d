// What the steps of one turn hand to each other: the question, which blocks matter for it, which are being read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "recall/block_index.h"
#include "recall/fuse.h"
#include "session/attended.h"
#include "session/session.h"
#include "store/cold_store.h"
#include "stream/block.h"

namespace modeld {

inline constexpr SeqId kMain = 0;
/// Room for a question that a context is opened with; a longer one opens a larger context, up to the hot budget.
inline constexpr std::int32_t kQuestionRoom = 384;
inline constexpr BlockLimits kBlockLimits = {64, 128, 1};
/// Isolated blocks are computed side by side, to fill a batch.
inline constexpr std::int32_t kLanes = 4;
inline constexpr std::int32_t kBatchTokens = 512;

/// A question as tokens.
struct QuestionTokens {
  std::vector<Token> before;   // separator
  std::vector<Token> content;  // the user's words: they alone give the queries
  std::vector<Token> after;    // template and answer prefix
  std::int32_t begun = 0;      // how many of the last tokens of `after` are the answer prefix
  [[nodiscard]] std::int32_t size() const {
    return static_cast<std::int32_t>(before.size() + content.size() + after.size());
  }
};

/// A stream range and where it stands in sequence 0.
struct ResidentRange {
  StreamRange range;
  Place at;
};

/// Blocks that were computed in lanes, in order.
struct Isolated {
  std::vector<KvPayload> payloads;
  std::vector<std::vector<std::vector<float>>> keys;  // block, KV head, rows
};

/// A block that has been computed before, and where.
struct KnownBlock {
  BlockKey key;
  const BlockIndex* index = nullptr;
  std::size_t block = 0;
};

/// What the stream was before an edit: its blocks that come again are taken over. `id`: its records in the store.
struct FormerStream {
  SessionId id;
  Digest128 sinks;
  std::unique_ptr<BlockIndex> index;
};

/// Taken out of sequence 0 for one question; it comes back by its own KV, or as a block from the store.
struct SetAside {
  Place at;
  std::optional<KvPayload> payload;
  std::size_t block = 0;
};

/// What sequence 0 holds between two questions.
struct Resident {
  /// Whether it holds sinks, pinned and recent as the plan has them.
  bool valid = false;
  std::vector<ResidentRange> ranges;  // behind the sinks
  Place end;
  std::vector<SetAside> aside;
  /// What was set aside of it cannot come back.
  bool lost = false;
  std::int64_t pinned_cold_tokens = 0;
};

/// KV of a range as it stood in sequence 0, so that it need not be computed again when it is to stand there again.
struct KeptRange {
  BlockKey key;
  KvPayload payload;
};

/// What was done since the last answer, for its report.
struct Since {
  std::int64_t computed = 0;
  std::int64_t recomputed = 0;
  std::int64_t taken_over = 0;  // from before an edit
  double ingest_seconds = 0.0;
};

/// Measured, in tokens a second, for predictions; 0 until known.
struct Speeds {
  double ingest = 0.0;
  double question = 0.0;
};

/// What is known of the blocks, one entry each.
struct Search {
  std::vector<StreamRange> ranges;
  std::vector<std::vector<double>> asked;    // how the question draws to them, by head
  std::vector<std::vector<double>> written;  // how what was written does
  std::vector<double> meaning;               // how near the question's meaning is; empty without an embedder
};

/// Scores by heads, by words and, with an embedder, by meaning; and their ranks fused, best first.
struct Ranked {
  std::vector<ScoreList> lists;
  std::vector<BlockScore> fused;
};

/// What a question wants to read.
struct Relevance {
  std::vector<double> scores;       // one a block, > 0 for those that matter
  std::vector<std::size_t> blocks;  // to read, best first
  /// What of each of `blocks` is read: all of it, or the sentences that matter.
  std::vector<StreamRange> ranges;
  /// Empty where the question does without retrieval.
  Search search;
};

/// A question that is being answered, and who is told of it.
struct Turn {
  const Question& question;
  const QuestionTokens& tokens;
  const TextSink& sink;
  const ProgressSink& progress;
  const CancelFlag* cancel;
  Answer& answer;
  /// The answer's own, while the whole text is being read.
  MapReport* pass = nullptr;
};

/// Blocks that are being read, and what the question's and the answer's tokens attend there.
struct Reading {
  std::vector<std::size_t> blocks;  // best first
  std::vector<StreamRange> ranges;  // what of each is read
  Place question;
  AttendedKeys attended;
};

/// Looks for a block that what is being written draws to more than to all that is being read.
struct Look {
  const Question* question = nullptr;
  Search* search = nullptr;
  Reading* reading = nullptr;
  std::span<const std::size_t> given_up;
};

/// A text that is being scored.
struct Scoring {
  std::span<const Token> continuation;
  const Question& how;
  const ProgressSink& progress;
  const CancelFlag* cancel = nullptr;
  Scored scored;
};

}  // namespace modeld
