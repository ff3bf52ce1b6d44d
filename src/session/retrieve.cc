// Which blocks matter for a question: a probe pass gives the question's queries in the heads that calibration found;
// every block's tokens are scored against them; lexical ranks are fused in.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "model/rope.h"
#include "recall/fuse.h"
#include "session/session_impl.h"

namespace modeld {
namespace {

/// Queries come from at most this many of the question's last tokens (design §6).
constexpr std::int32_t kQueryTokens = 256;

}  // namespace

Result<SessionImpl::Probe> SessionImpl::probe(const QuestionTokens& question) {
  Probe probe;
  probe.at = resident_end_;
  probe.content_begin = static_cast<std::int32_t>(question.before.size());
  probe.content_count = static_cast<std::int32_t>(question.content.size());
  if (const std::int32_t over = probe.content_count - kQueryTokens; over > 0) {
    probe.content_begin += over;
    probe.content_count -= over;
  }
  ObserveSpec spec;
  for (const HeadMass& head : calibration_.heads) spec.queries.push_back(head.head);
  spec.keys.assign(index_->kv_heads().begin(), index_->kv_heads().end());
  MODELD_TRY_VOID(engine_.observe(spec));
  std::vector<BatchToken> batch;
  Place at = resident_end_;
  for (const std::vector<Token>* part : {&question.before, &question.content}) {
    for (const Token token : *part) {
      batch.push_back(BatchToken{token, at, kMain, false});
      ++at;
    }
  }
  MODELD_TRY_VOID(engine_.compute(batch));
  const Observation& seen = engine_.observation();
  probe.keys = seen.keys;
  const auto dim = static_cast<std::size_t>(index_->key_dim());
  for (const std::vector<float>& all : seen.queries) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(probe.content_begin) * dim);
    probe.queries.emplace_back(
        begin, begin + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(probe.content_count) * dim));
  }
  MODELD_TRY_VOID(engine_.observe({}));
  MODELD_TRY_VOID(trim_main(resident_end_));
  return probe;
}

namespace {

/// Keys that a head sees in the probe pass, turned to their places, in ascending order of place.
struct VisibleKeys {
  std::vector<float> keys;
  std::vector<Place> places;
};

void append_rotated(VisibleKeys& visible, std::span<const float> keys, std::size_t dim, Place at, const Rope& rope,
                    std::span<const double> frequencies) {
  for (std::size_t row = 0; row * dim < keys.size(); ++row, ++at) {
    visible.keys.insert(visible.keys.end(), keys.begin() + static_cast<std::ptrdiff_t>(row * dim),
                        keys.begin() + static_cast<std::ptrdiff_t>((row + 1) * dim));
    rotate(std::span(visible.keys).last(dim), rope, frequencies, at.get());
    visible.places.push_back(at);
  }
}

}  // namespace

SessionImpl::Relevance SessionImpl::score(const Probe& probe, const Question& question) const {
  const auto dim = static_cast<std::size_t>(index_->key_dim());
  std::map<KvHeadRef, VisibleKeys> visible;
  for (std::size_t h = 0; h < index_->kv_heads().size(); ++h) {
    const KvHeadRef head = index_->kv_heads()[h];
    const Rope& rope = engine_.geometry().layers[static_cast<std::size_t>(head.layer)].rope;
    const std::vector<double> frequencies = rope_frequencies(rope);
    VisibleKeys& seen = visible[head];
    append_rotated(seen, index_->keys(h, {StreamPos(0), sinks_end_}), dim, Place(0), rope, frequencies);
    for (const ResidentRange& resident : resident_) {
      append_rotated(seen, index_->keys(h, resident.range), dim, resident.at, rope, frequencies);
    }
    append_rotated(seen, probe.keys[h], dim, probe.at, rope, frequencies);
  }
  std::vector<HeadQueries> queries;
  for (std::size_t h = 0; h < calibration_.heads.size(); ++h) {
    const HeadRef ref = calibration_.heads[h].head;
    const LayerGeometry& layer = engine_.geometry().layers[static_cast<std::size_t>(ref.layer)];
    const KvHeadRef kv = kv_head_of(engine_.geometry(), ref);
    const std::vector<double> frequencies = rope_frequencies(layer.rope);
    const VisibleKeys& seen = visible[kv];
    HeadQueries head;
    head.head = ref;
    head.kv_head = static_cast<std::size_t>(std::find(index_->kv_heads().begin(), index_->kv_heads().end(), kv) -
                                            index_->kv_heads().begin());
    MODELD_CHECK(head.kv_head < index_->kv_heads().size());
    const std::size_t before = seen.places.size() - probe.keys[head.kv_head].size() / dim;
    for (std::int32_t t = 0; t < probe.content_count; ++t) {
      const Place place = probe.at + probe.content_begin + t;
      const auto first = probe.queries[h].begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(t) * dim);
      std::vector<float> query(first, first + static_cast<std::ptrdiff_t>(dim));
      rotate(query, layer.rope, frequencies, place.get());
      const std::size_t end = before + static_cast<std::size_t>(probe.content_begin + t) + 1;
      const auto begin = layer.window == 0
                             ? seen.places.begin()
                             : std::upper_bound(seen.places.begin(), seen.places.end(), place - layer.window);
      const auto skip = static_cast<std::size_t>(begin - seen.places.begin());
      head.local_lse.push_back(
          static_cast<float>(log_sum_exp(query, std::span(seen.keys).subspan(skip * dim), end - skip)));
      std::copy(first, first + static_cast<std::ptrdiff_t>(dim), query.begin());
      rotate(query, layer.rope, frequencies, calibration_.distance);
      head.queries.insert(head.queries.end(), query.begin(), query.end());
    }
    queries.push_back(std::move(head));
  }
  std::vector<StreamRange> candidates;
  std::vector<std::size_t> numbers;
  for (std::size_t b = 0; b < blocks_done_; ++b) {
    const bool attended = std::any_of(resident_.begin(), resident_.end(),
                                      [&](const ResidentRange& r) { return r.range.overlaps(blocks_[b].range); });
    if (attended) continue;
    candidates.push_back(blocks_[b].range);
    numbers.push_back(b);
  }
  const std::vector<double> by_heads = score_blocks(*index_, queries, candidates, calibration_.rule);
  const std::vector<double> by_words_all = lexical_.score(question.text);
  std::vector<double> by_words;
  for (const std::size_t b : numbers) by_words.push_back(by_words_all[b]);
  const std::vector<BlockScore> fused = fuse_ranks(by_heads, by_words);
  Relevance relevance;
  relevance.scores.assign(blocks_done_, 0.0);
  for (const BlockScore& ranked : fused) relevance.scores[numbers[ranked.block]] = ranked.score;
  const auto most = static_cast<std::size_t>(std::max(0, policy_.blocks));
  relevance.blocks = static_cast<std::int32_t>(blocks_to_read(fused, by_heads, by_words, most));
  return relevance;
}

Result<SessionImpl::Relevance> SessionImpl::relevance(const QuestionTokens& tokens, const Question& question,
                                                      Seconds& seconds) {
  Relevance relevance;
  relevance.scores.assign(blocks_done_, 0.0);
  if (question.oracle) {
    double score = 1.0;
    for (const StreamRange& wanted : *question.oracle) {
      for (std::size_t b = 0; b < blocks_done_; ++b) {
        if (!blocks_[b].range.overlaps(wanted) || relevance.scores[b] > 0.0) continue;
        relevance.scores[b] = score;
        ++relevance.blocks;
      }
      score /= 2.0;
    }
    return relevance;
  }
  if (!question.retrieve) return relevance;
  const Stopwatch probing;
  MODELD_TRY(const Probe probed, probe(tokens));
  recomputed_since_ += static_cast<std::int64_t>(tokens.before.size() + tokens.content.size());
  seconds.probe = probing.seconds();
  const Stopwatch scoring;
  relevance = score(probed, question);
  if (question.blocks) relevance.blocks = *question.blocks;
  seconds.scoring = scoring.seconds();
  return relevance;
}

Passage SessionImpl::passage(std::size_t block, double score) const {
  Passage passage;
  passage.range = blocks_[block].range;
  passage.score = score;
  passage.origin = policy_.origin;
  passage.text = text_.text(passage.range);
  const StreamText::Where where = text_.where(passage.range);
  passage.source = where.source;
  passage.line_begin = where.line_begin;
  passage.line_end = where.line_end;
  return passage;
}

Result<std::vector<Passage>> SessionImpl::retrieve(const Question& question, std::size_t count) {
  MODELD_TRY(const QuestionTokens tokens, tokenise(question));
  MODELD_TRY_VOID(ingest({}, nullptr));
  if (exact_) return std::vector<Passage>{};
  Seconds seconds;
  const auto relevant = relevance(tokens, question, seconds);
  if (!relevant) {
    note_failure(relevant.error());
    return tl::unexpected(relevant.error());
  }
  const std::vector<double>& scores = relevant->scores;
  std::vector<std::size_t> order;
  for (std::size_t b = 0; b < scores.size(); ++b) {
    if (scores[b] > 0.0) order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(order.size(), count));
  std::vector<Passage> passages;
  for (const std::size_t b : order) passages.push_back(passage(b, scores[b]));
  return passages;
}

}  // namespace modeld
