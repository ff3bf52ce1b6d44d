// The session's state, and the steps of a turn. Each step's file says what it does: ingest.cc (text into blocks),
// hot_set.cc (the resident layout), retrieve.cc (which blocks matter), read.cc (reading them and writing),
// map_reduce.cc (reading all of them, part by part), score.cc (how likely a text is), answer.cc (all of it).
//
// Invariants:
//  - index and store records cover the same ranges: the first of `blocks_`, all that is computed but the sinks;
//  - between questions sequence 0 holds, when `resident_` is valid: sinks, pinned, recent, compact, and nothing else;
//  - lanes (sequences 1 …) are empty between steps;
//  - the last two hold while the engine's holder is this session.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/stopwatch.h"
#include "plan/hot_set.h"
#include "plan/placement.h"
#include "recall/block_index.h"
#include "recall/fuse.h"
#include "recall/score.h"
#include "session/attended.h"
#include "session/durable.h"
#include "session/frame.h"
#include "session/session.h"
#include "session/stream_text.h"
#include "session/turn.h"
#include "session/writing.h"

namespace modeld {

class SessionImpl final : public Session {
 public:
  SessionImpl(Engine& engine, ColdStore& store, const Calibration& calibration, const SessionSettings& settings,
              PromptFrame frame);
  ~SessionImpl() override;
  Status append(std::span<const TextPart> parts, const CancelFlag* cancel) override;
  Status replace(std::span<const TextPart> parts, const CancelFlag* cancel) override;
  std::vector<TextPart> parts() const override { return text_.parts(); }
  Result<IngestPlan> plan() const override;
  Status ingest(const ProgressSink& progress, const CancelFlag* cancel) override;
  Result<Answer> ask(const Question& question, const TextSink& sink, const ProgressSink& progress,
                     const CancelFlag* cancel) override;
  Result<MapReducePlan> plan_map(const Question& question) const override;
  Result<Scored> score(std::span<const Token> continuation, const Question& how, const ProgressSink& progress,
                       const CancelFlag* cancel) override;
  std::int64_t stream_tokens() const override { return text_.end().get(); }
  std::vector<Token> stream() const override { return text_.tokens(); }
  std::vector<StreamRange> blocks() const override;
  Result<std::vector<Passage>> retrieve(const Question& question, std::size_t count) override;
  Result<std::vector<SelectorRanking>> compare_selectors(const Question& question, std::size_t count) override;
  std::string check_integrity() const override;
  std::optional<Error> take_storage_error() override;
  Status resume();

 private:
  // session.cc
  /// Finds out whether another session has used the engine since, and then counts on nothing in its context.
  void take_engine();
  [[nodiscard]] std::unique_ptr<BlockIndex> new_index() const;
  [[nodiscard]] StreamPos sinks_end() const { return index_->sinks_end(); }  // 0 until computed
  [[nodiscard]] std::size_t blocks_done() const { return index_->blocks(); }
  [[nodiscard]] std::int32_t exact_limit() const;
  [[nodiscard]] bool fits_exact(std::int64_t question_tokens) const;
  Result<QuestionTokens> tokenise(const Question& question) const;
  void note_failure(const Error& error);
  /// Gives up what exact mode computed; it is counted as computed again.
  void leave_exact();
  void drop_exact();
  // ingest.cc
  Status ingest_exact(const ProgressSink& progress, const CancelFlag* cancel);
  Status ingest_extended(const ProgressSink& progress, const CancelFlag* cancel);
  Status ingest_isolated(const ProgressSink& progress, const CancelFlag* cancel);
  Status ingest_streamed(const ProgressSink& progress, const CancelFlag* cancel);
  Status ingest_sinks();
  /// Computes blocks_[first … first+count) in lanes; returns payloads and, row by row, their index keys.
  Result<Isolated> compute_isolated(std::span<const StreamRange> ranges);
  [[nodiscard]] StreamRange run_up_of(StreamRange block) const;
  [[nodiscard]] BlockKey key_of(std::size_t block) const;
  /// Where an equal block (tokens, sinks and run-up) came before, if its KV is still there.
  [[nodiscard]] std::optional<KnownBlock> known_block(std::size_t block) const;
  Result<KvPayload> to_park(KvPayload payload) const;  // as the cold store is to have it
  Status put(std::size_t block, const BlockKey& key, KvPayload payload);
  Status take_over(std::size_t block, const KnownBlock& known);
  Status park(std::size_t block, KvPayload payload, std::span<const std::vector<float>> keys);
  // edit.cc
  bool take_over_sinks(StreamPos end);
  void forget_formers();
  // resume.cc
  /// What KV is addressed and checked by: the engine's identity with the context that the session opens.
  [[nodiscard]] Identity identity() const;
  Status take_blocks();
  Status take_formers();
  void save();
  void save_if_due();
  void note_use(const Answer& answer);
  Status charge();  // for index, text and what is kept
  [[nodiscard]] BlockKey kept_key(KeptSlot slot, StreamRange range, Place at) const;
  void keep(KeptSlot slot, StreamRange range, Place at);
  /// Puts a range into sequence 0 as it was kept, or computes and keeps it.
  Status place_kept(KeptSlot slot, StreamRange range, Place at);
  // hot_set.cc
  Status open_context(std::int32_t question_tokens);
  Status open_cells(std::int32_t cells);
  /// Makes sequence 0 hold sinks, pinned and recent, and nothing else.
  Status make_resident();
  Status compute_range(StreamRange range, Place at, bool observed);
  [[nodiscard]] StreamRange recent_range() const;
  /// Whether a block stands in sequence 0 between two questions.
  [[nodiscard]] bool is_resident(std::size_t block) const;
  [[nodiscard]] std::vector<BlockView> views(std::span<const double> scores) const;
  Result<HotSetPlan> plan_hot(std::span<const double> scores, std::int32_t question_tokens, std::int32_t blocks) const;
  Status trim_main(Place end);
  /// Puts a block's KV at `at`, from the store or, if dropped, computed again.
  Status admit_block(std::size_t block, Place at);
  /// Takes out of sequence 0 what stands there because it is to be read elsewhere, until put_back().
  Status set_aside(PlaceRange hole);
  /// Ends a question: sequence 0 holds again what it held before.
  Status put_back();
  // retrieve.cc
  /// What calibration found to look with: queries of the retrieval heads, keys of the index's.
  [[nodiscard]] ObserveSpec retrieval_heads() const;
  /// What is resident, without `holes` (ascending), for the scorer.
  [[nodiscard]] AttendedKeys attended(std::span<const PlaceRange> holes = {}) const;
  /// Computes the question behind the recent window, to see its queries, and takes it away again.
  Result<std::vector<HeadQueries>> probe(const QuestionTokens& question);
  /// What heads and, with an embedder, meaning say of every block.
  Result<Search> search(std::span<const HeadQueries> queries, const Question& question) const;
  [[nodiscard]] Ranked rank(const Search& search, std::string_view words) const;
  /// By fused ranks, or by the question's own oracle.
  Result<Relevance> relevance(const QuestionTokens& tokens, const Question& question, Seconds& seconds);
  Result<std::vector<SelectorRanking>> rankings(const QuestionTokens& tokens, const Question& question,
                                                std::size_t count);
  [[nodiscard]] Passage passage(StreamRange range, double score) const;
  // score.cc
  Status score_ready(Scoring& job);
  Status score_behind_stream(Scoring& job, Place end);
  Status score_behind_blocks(Scoring& job);
  /// What to read before that which follows `behind`, best first, in at most `room` tokens.
  Result<std::vector<std::size_t>> blocks_for(std::span<const Token> behind, const Question& how, std::int32_t room);
  // answer.cc
  Status make_ready(const Turn& turn);
  Status answer_exact(const Turn& turn);
  Status answer_extended(const Turn& turn);
  Status compute_question(const QuestionTokens& tokens, std::span<const Token> written, Place at);
  // map_reduce.cc
  Result<MapReducePlan> plan_map(const Question& question, const QuestionTokens& tokens) const;
  Status answer_map(const Turn& turn);
  /// Asks each part; then writes partial answers together, round by round.
  Result<std::vector<std::vector<Token>>> map(const Turn& turn, const MapReducePlan& plan);
  Status reduce(const Turn& turn, const MapReducePlan& plan, std::vector<std::vector<Token>> partial);
  /// Puts a part, or partial answers as text, into sequence 0; returns the place behind them.
  Result<Place> admit_part(const Turn& turn, const MapPart& part);
  Result<Place> read_partial(const Turn& turn, std::span<const std::vector<Token>> partial);
  Result<Writing> ask_behind(const Turn& turn, Place at, bool last);
  // read.cc
  Status read_and_write(const Turn& turn);
  /// Admits what the plan takes of the wanted blocks, and computes the question and what was written behind them.
  /// `looking`: what the retrieval heads see is recorded from here on.
  Result<Reading> read(const Relevance& wanted, const QuestionTokens& tokens, std::span<const Token> written,
                       bool looking, Seconds& seconds);
  /// Whole blocks from the store; sentences are computed, so that they see each other.
  Status admit_passages(std::span<const std::size_t> blocks, std::span<const StreamRange> ranges,
                        std::span<const PlacedRange> placed);
  [[nodiscard]] Writing begin_writing(const Question& question) const;
  /// Writes from the logits of `row`, the next token at `at`; with a look, maybe up to a block to go back for.
  Result<std::optional<std::size_t>> write(const Turn& turn, Writing& writing, std::size_t row, Place at,
                                           const Look* look);
  /// Takes up `count` written tokens, from row `first` of the last observation on, whose row 0 stands at `at`.
  void note_written(const Look& look, std::int32_t first, std::int32_t count, Place at) const;
  [[nodiscard]] std::optional<std::size_t> better_block(const Look& look, const Writing& writing) const;
  void account(const QuestionTokens& tokens, std::span<const StreamRange> retrieved, Answer& answer);

  Engine& engine_;
  ColdStore& store_;
  const Calibration& calibration_;
  SessionSettings settings_;
  ReadingPolicy policy_;
  PromptFrame frame_;
  SessionId id_;
  std::uint64_t holder_;  // what the engine knows the session by
  StreamText text_;
  std::unique_ptr<Durable> durable_;  // null for a session that ends with its process
  std::vector<Block> blocks_;         // all of the stream behind the sinks
  std::unique_ptr<BlockIndex> index_;
  std::vector<FormerStream> formers_;  // until all of the stream is computed
  bool exact_ = false;
  std::int32_t exact_room_ = kQuestionRoom;  // question tokens that the exact context has room for
  StreamPos exact_end_;                      // of the stream, computed into sequence 0 in exact mode
  Resident resident_;
  std::array<std::optional<KeptRange>, 2> kept_;  // by KeptSlot
  std::int32_t cells_ = 0;
  TurnShape shape_;
  std::uint64_t turn_ = 0;
  Since since_;
  Speeds speeds_;
};

}  // namespace modeld
