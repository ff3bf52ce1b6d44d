// Reading and writing in extended mode: the best blocks directly before the question, best last; the question computed
// behind them; the answer. What the model writes is a better query than what it was asked, so it is looked at while it
// is held back: where it draws to a block that is not being read, the answer goes back to the last word that was shown,
// and goes on with that block.
#include <algorithm>
#include <utility>

#include "session/session_impl.h"

namespace modeld {

Status SessionImpl::answer_extended(const Turn& turn) {
  Status status = read_and_write(turn);
  // Retrieved blocks, question and answer leave the hot set again, also after an error.
  if (Status restored = put_back(); status && !restored) status = std::move(restored);
  return status;
}

Status SessionImpl::read_and_write(const Turn& turn) {
  const auto& [question, tokens, sink, progress, cancel, answer, pass] = turn;
  MODELD_TRY(Relevance relevant, relevance(tokens, question, answer.seconds));
  Writing writing = begin_writing(question);
  std::vector<std::size_t> given_up;
  while (true) {
    const bool looking = answer.returns < settings_.reread.returns && !relevant.search.ranges.empty();
    MODELD_TRY(Reading reading, read(relevant, tokens, writing.kept(), looking, answer.seconds));
    const std::int32_t computed = tokens.size() + static_cast<std::int32_t>(writing.kept().size());
    const Look look{&question, &relevant.search, &reading, given_up};
    std::optional<std::size_t> better;
    if (looking) {
      const std::int32_t begun = tokens.begun + static_cast<std::int32_t>(writing.kept().size());
      note_written(look, computed - begun, begun, reading.question);
      if (begun > 0) better = better_block(look, writing);
    }
    if (!better) {
      MODELD_TRY(better, write(turn, writing, static_cast<std::size_t>(computed) - 1, reading.question + computed,
                               looking ? &look : nullptr));
    }
    if (!better) {
      account(tokens, reading.ranges, answer);
      for (std::size_t i = 0; i < reading.blocks.size(); ++i)
        answer.retrieved.push_back(passage(reading.ranges[i], relevant.scores[reading.blocks[i]]));
      break;
    }
    ++answer.returns;
    since_.recomputed += computed;
    given_up.insert(given_up.end(), reading.blocks.begin(), reading.blocks.end());
    std::fill(relevant.scores.begin(), relevant.scores.end(), 0.0);
    relevant.scores[*better] = 1.0;
    relevant.blocks = {*better};
    relevant.ranges = {blocks_[*better].range};
    MODELD_TRY_VOID(put_back());
    MODELD_TRY_VOID(make_resident());
  }
  writing.give_to(answer);
  return {};
}

Result<Reading> SessionImpl::read(const Relevance& wanted, const QuestionTokens& tokens, std::span<const Token> written,
                                  bool looking, Seconds& seconds) {
  const Stopwatch admitting;
  std::vector<double> order(blocks_done(), 0.0);
  for (std::size_t i = 0; i < wanted.blocks.size(); ++i) order[wanted.blocks[i]] = 1.0 / static_cast<double>(1 + i);
  MODELD_TRY(const HotSetPlan plan, plan_hot(order, tokens.size(), static_cast<std::int32_t>(wanted.blocks.size())));
  PlacementRequest request;
  request.sink_tokens = static_cast<std::int32_t>(sinks_end().get());
  std::vector<StreamRange> pinned;
  pinned.reserve(resident_.ranges.size());
  for (std::size_t i = 0; i + 1 < resident_.ranges.size(); ++i) pinned.push_back(resident_.ranges[i].range);
  request.pinned = pinned;
  request.recent = resident_.ranges.empty() ? StreamRange{sinks_end(), sinks_end()} : resident_.ranges.back().range;
  std::vector<StreamRange> retrieved;
  retrieved.reserve(plan.retrieved.size());
  for (const std::size_t b : plan.retrieved) {
    const auto i = std::find(wanted.blocks.begin(), wanted.blocks.end(), b) - wanted.blocks.begin();
    // What stands in the hot set is moved as it stands.
    retrieved.push_back(is_resident(b) ? blocks_[b].range : wanted.ranges[static_cast<std::size_t>(i)]);
  }
  request.retrieved = retrieved;
  request.order = policy_.order;
  request.question_tokens = tokens.size();
  request.reserve_tokens = settings_.answer_tokens;
  request.place_limit = std::min(engine_.geometry().trained_window, cells_);
  MODELD_TRY(const Placement placement, place(request));
  for (const PlaceRange& hole : placement.holes) MODELD_TRY_VOID(set_aside(hole));
  Reading reading{plan.retrieved, retrieved, placement.question,
                  looking ? attended(placement.holes) : AttendedKeys(engine_.geometry(), index_->keys())};
  MODELD_TRY_VOID(admit_passages(plan.retrieved, retrieved, placement.retrieved));
  if (looking)
    for (const PlacedRange& placed : placement.retrieved)
      reading.attended.append(index_->keys(), placed.range, placed.at);
  seconds.admission += admitting.seconds();
  const Stopwatch computing;
  MODELD_TRY_VOID(engine_.observe(looking ? retrieval_heads() : ObserveSpec{}));
  MODELD_TRY_VOID(compute_question(tokens, written, reading.question));
  const double took = computing.seconds();
  seconds.question += took;
  speeds_.question = (tokens.size() + static_cast<double>(written.size())) / took;
  return reading;
}

Status SessionImpl::admit_passages(std::span<const std::size_t> blocks, std::span<const StreamRange> ranges,
                                   std::span<const PlacedRange> placed) {
  std::vector<BatchToken> sentences;
  const auto compute = [&]() -> Status {
    if (sentences.empty()) return {};
    const std::vector<BatchToken> batch = std::exchange(sentences, {});
    since_.recomputed += std::ssize(batch);
    MODELD_TRY_VOID(engine_.observe({}));
    return engine_.compute(batch);
  };
  for (const PlacedRange& one : placed) {
    const std::size_t block =
        blocks[static_cast<std::size_t>(std::find(ranges.begin(), ranges.end(), one.range) - ranges.begin())];
    if (one.range == blocks_[block].range) {
      MODELD_TRY_VOID(compute());
      MODELD_TRY_VOID(admit_block(block, one.at));
      continue;
    }
    Place at = one.at;
    for (StreamPos pos = one.range.begin; pos < one.range.end; ++pos, ++at)
      sentences.push_back({text_.tokens()[static_cast<std::size_t>(pos.get())], at, kMain, false});
  }
  return compute();
}

Writing SessionImpl::begin_writing(const Question& question) const {
  return {engine_, question, std::min(question.answer_tokens_max, settings_.answer_tokens),
          question.stop_at_line_end || !frame_.chat};
}

Result<std::optional<std::size_t>> SessionImpl::write(const Turn& turn, Writing& writing, std::size_t row, Place at,
                                                      const Look* look) {
  Seconds& seconds = turn.answer.seconds;
  const Stopwatch watch;
  const auto look_now = [&]() -> std::optional<std::size_t> {
    if (look == nullptr) return std::nullopt;
    const Stopwatch looking;
    const auto better = better_block(*look, writing);
    seconds.looking += looking.seconds();
    if (better) writing.take_back();
    return better;
  };
  std::optional<std::size_t> better;
  while (true) {
    if (turn.cancel != nullptr && turn.cancel->requested())
      return fail(ErrorCode::cancelled, "Cancelled while answering.");
    const Token token = writing.next(engine_.logits(row));
    if (writing.done()) {
      better = look_now();
      break;
    }
    const BatchToken next{token, at, kMain, true};
    MODELD_TRY_VOID(engine_.compute(std::span(&next, 1)));
    row = 0;
    if (look != nullptr) {
      const Stopwatch looking;
      note_written(*look, 0, 1, at);
      seconds.looking += looking.seconds();
    }
    ++at;
    if (look != nullptr && std::cmp_less(writing.held(), settings_.reread.look_tokens)) continue;
    better = look_now();
    if (better) break;
    writing.keep(turn.sink);
  }
  if (!better) writing.keep(turn.sink);
  seconds.decode += watch.seconds();
  return better;
}

void SessionImpl::note_written(const Look& look, std::int32_t first, std::int32_t count, Place at) const {
  look.reading->attended.append(engine_.observation(), at);
  const std::vector<HeadQueries> queries = queries_of(engine_.geometry(), calibration_, index_->keys(),
                                                      engine_.observation(), first, count, at, look.reading->attended);
  std::vector<std::vector<double>> fresh =
      score_by_head(index_->keys(), queries, look.search->ranges, calibration_.rule);
  std::vector<std::vector<double>>& written = look.search->written;
  // Behind other blocks what was written before is seen anew.
  if (at == look.reading->question || written.empty()) {
    written = std::move(fresh);
    return;
  }
  for (std::size_t h = 0; h < written.size(); ++h) {
    for (std::size_t c = 0; c < written[h].size(); ++c) written[h][c] = std::max(written[h][c], fresh[h][c]);
  }
}

std::optional<std::size_t> SessionImpl::better_block(const Look& look, const Writing& writing) const {
  const Question& question = *look.question;
  const Ranked ranked = rank(*look.search, question.text + " " + question.answer_prefix + " " + writing.all_text());
  std::vector<double> fused(ranked.fused.size(), 0.0);
  for (const BlockScore& block : ranked.fused) fused[block.block] = block.score;
  const std::vector<double> drawn = sum_of_heads(look.search->written);
  return block_to_go_back_for({fused, drawn, look.reading->blocks, look.given_up}, settings_.reread.margin);
}

}  // namespace modeld
