// One session: a token stream far longer than the model's window, and questions about it.
//
// The life of a question: tokenise → ingest (sinks, isolated or streamed blocks, recent window; every complete block is
// parked in the cold store and indexed) → probe pass (the question's queries) → score blocks → plan hot set and places
// → admit the best blocks directly before the question → compute the question behind them → generate → put the hot set
// back.
//
// Ownership: borrows engine, store and calibration; they must outlive it. One session at a time uses an engine's
// context. Thread: one; cancel through the flag. Failure: after any error but engine_failed the session stands where
// its last completed step left it, and goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "base/progress.h"
#include "engine/embedder.h"
#include "engine/engine.h"
#include "plan/budget.h"
#include "plan/map_reduce.h"
#include "plan/reading.h"
#include "plan/reread.h"
#include "recall/calibration.h"
#include "session/answer.h"
#include "session/likelihood.h"
#include "store/cold_store.h"
#include "store/state.h"
#include "stream/segment.h"

namespace modeld {

enum class ContextMode : std::uint8_t {
  /// Dense attention over everything; overflow is refused.
  exact,
  /// Exact while it fits, extended beyond.
  auto_,
  /// The compact hot set inside the window too.
  focus,
};

struct SessionSettings {
  ContextMode context = ContextMode::auto_;
  /// Hot budget in tokens, from derive_budget().
  std::int32_t hot_tokens = 0;
  KvType kv_type = KvType::f16;
  /// The format of parked KV, smaller than kv_type, which is f16 then; sinks and recent window keep that. Nothing: as
  /// kv_type.
  std::optional<KvType> cold_type;
  /// Tokens kept free for an answer.
  std::int32_t answer_tokens = 256;
  std::int32_t threads = 0;
  /// Overrides of the calibrated reading policy.
  std::optional<ReadingPolicy> reading;
  RereadPolicy reread;
  /// Several hops: passages read beside the reading policy's, at most, that those lead to by a word (recall/follow.h).
  std::int32_t follow = 0;
  /// A state directory that keeps the session under `name`: it is taken up there, and written down there as it goes on.
  /// Must outlive the session, and be the tier below its store. Null: the session ends with its process.
  State* state = nullptr;
  std::string name;
  /// A third selector, by the meaning of sentences. Must outlive the session. Null: heads and words alone.
  Embedder* embedder = nullptr;
};

struct Sampling {
  /// 0: greedy.
  float temperature = 0.0F;
  float top_p = 1.0F;
  std::int32_t top_k = 0;
  std::uint64_t seed = 0;
};

/// A part of the text that questions are about.
struct TextPart {
  std::string name;
  std::string text;
  SegmentKind kind = SegmentKind::user;
};

struct Question {
  std::string text;
  /// Written after the template's answer prompt, as if the model had begun so; the answer goes on from it.
  std::string answer_prefix;
  std::int32_t answer_tokens_max = 256;
  Sampling sampling;
  /// Ends the answer at a line end, for models without a chat template.
  bool stop_at_line_end = false;
  /// For comparisons: attend only sinks and recent window.
  bool retrieve = true;
  /// Blocks read at most, instead of the reading policy's number.
  std::optional<std::int32_t> blocks;
  /// For comparisons: these blocks instead of the selector's (stream ranges, best first).
  std::optional<std::vector<StreamRange>> oracle;
  /// For questions about the whole text, which no passage answers: it is read part by part from its KV, each part is
  /// asked the question, and the answer is written from the partial answers (Session::plan_map() says what that takes).
  /// What fits exact mode is attended as a whole anyway.
  bool map = false;
  /// Longest partial answer.
  std::int32_t partial_tokens_max = 96;
};

/// One selector's first choices, best first (Session::compare_selectors).
struct SelectorRanking {
  std::string selector;
  std::vector<StreamRange> blocks;
};

/// Called with each piece of the answer as it is decided: whole UTF-8 characters.
using TextSink = std::function<void(std::string_view)>;

/// What ingest will do, known after tokenising and before computing.
struct IngestPlan {
  std::int64_t stream_tokens = 0;
  /// Of them, those that have been computed.
  std::int64_t done_tokens = 0;
  bool exact = false;
  std::int64_t blocks = 0;
  std::int64_t kv_bytes = 0;
  std::int64_t index_bytes = 0;
  double predicted_seconds = 0.0;
};

class Session {
 public:
  /// With settings.state: the session of that name goes on, or begins. Errors also: payload_invalid, bad_argument for
  /// one that was made otherwise; state_damaged, io_failed.
  static Result<std::unique_ptr<Session>> create(Engine& engine, ColdStore& store, const Calibration& calibration,
                                                 const SessionSettings& settings);
  virtual ~Session() = default;

  /// Appends text to the stream (tokenised, segmented; nothing is computed). Errors: text_empty, host_budget_exceeded.
  virtual Status append(std::span<const TextPart> parts, const CancelFlag* cancel = nullptr) = 0;
  /// Makes `parts` the whole of the stream. Nothing is computed; what comes again of what was computed for the stream
  /// as it was is taken over by the next ingest(). Errors as append(), and then the stream stays as it was.
  virtual Status replace(std::span<const TextPart> parts, const CancelFlag* cancel = nullptr) = 0;
  /// The texts of the stream, in order.
  [[nodiscard]] virtual std::vector<TextPart> parts() const = 0;
  /// What the next ingest() will do.
  virtual Result<IngestPlan> plan() const = 0;
  /// Computes what has been appended and not computed yet. On cancel what was completed stays; the next call goes on.
  virtual Status ingest(const ProgressSink& progress = {}, const CancelFlag* cancel = nullptr) = 0;

  /// Answers one question about the stream; the stream does not change. Ingests first what is not computed yet.
  virtual Result<Answer> ask(const Question& question, const TextSink& sink = {}, const ProgressSink& progress = {},
                             const CancelFlag* cancel = nullptr) = 0;
  /// How likely `continuation` is as what comes directly after the stream, without a template. Read behind sinks,
  /// pinned text and recent window, with how.retrieve (or oracle) also behind the blocks that the text before a token
  /// asks for; in exact mode behind everything. The stream does not change. Errors: bad_argument for no tokens,
  /// question_too_long.
  virtual Result<Scored> score(std::span<const Token> continuation, const Question& how,
                               const ProgressSink& progress = {}, const CancelFlag* cancel = nullptr) = 0;

  /// What a question with `map` will read, compute and write; nothing where the text fits exact mode.
  virtual Result<MapReducePlan> plan_map(const Question& question) const = 0;

  [[nodiscard]] virtual std::int64_t stream_tokens() const = 0;
  [[nodiscard]] virtual std::vector<Token> stream() const = 0;
  /// The blocks of the stream, in order, without sinks.
  [[nodiscard]] virtual std::vector<StreamRange> blocks() const = 0;
  /// Ranks all blocks for a question without answering (recall@k): best first.
  virtual Result<std::vector<Passage>> retrieve(const Question& question, std::size_t count) = 0;
  /// For evaluation, by one probe pass: the first `count` blocks by ours ("fused", as retrieve(); always first),
  /// "heads", "bm25", "embedder" if any, "quest" (a block one page), "quest-16", "means" (recall/rivals.h). Exact mode:
  /// empty.
  virtual Result<std::vector<SelectorRanking>> compare_selectors(const Question& question, std::size_t count) = 0;
  /// What could not be written to the state directory, or was not there as it had been written, since this was last
  /// asked. The session goes on: what was not written is tried again with what comes next.
  virtual std::optional<Error> take_storage_error() = 0;
  /// Empty if stream, store, index and engine agree.
  [[nodiscard]] virtual std::string check_integrity() const = 0;
};

}  // namespace modeld
