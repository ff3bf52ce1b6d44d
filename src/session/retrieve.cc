// Which blocks matter for a question: a probe pass gives the question's queries in the heads that calibration found;
// every block's tokens are scored against them; lexical ranks are fused in.
#include <algorithm>
#include <array>
#include <utility>

#include "recall/follow.h"
#include "recall/fuse.h"
#include "recall/rivals.h"
#include "session/session_impl.h"

namespace modeld {
namespace {

/// Queries come from at most this many of the question's last tokens (design §6).
constexpr std::int32_t kQueryTokens = 256;

/// A sentence matters if the question draws to it at least this much of what it draws to the block's best one.
constexpr double kSentenceShare = 0.5;

/// From the first of a block's sentences that matters to the last.
StreamRange what_matters(const KeyIndex& index, std::span<const HeadQueries> queries, ScoreRule rule,
                         std::span<const StreamRange> sentences) {
  const std::vector<double> scores = score_blocks(index, queries, sentences, rule);
  const double least = kSentenceShare * *std::max_element(scores.begin(), scores.end());
  StreamRange range = sentences.front();
  bool begun = false;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    if (scores[i] < least) continue;
    if (!std::exchange(begun, true)) range.begin = sentences[i].begin;
    range.end = sentences[i].end;
  }
  return range;
}

}  // namespace

ObserveSpec SessionImpl::retrieval_heads() const {
  ObserveSpec spec;
  for (const HeadMass& head : calibration_.heads) spec.queries.push_back(head.head);
  spec.keys.assign(index_->keys().kv_heads().begin(), index_->keys().kv_heads().end());
  return spec;
}

AttendedKeys SessionImpl::attended(std::span<const PlaceRange> holes) const {
  AttendedKeys keys(engine_.geometry(), index_->keys());
  keys.append(index_->keys(), {StreamPos(0), sinks_end()}, Place(0));
  for (const ResidentRange& resident : resident_.ranges) {
    StreamRange left = resident.range;
    Place at = resident.at;
    const auto append = [&](std::int64_t count) {
      keys.append(index_->keys(), {left.begin, left.begin + count}, at);
      left.begin += count;
      at += static_cast<std::int32_t>(count);
    };
    for (const PlaceRange& hole : holes) {
      if (hole.begin < at || hole.begin - at >= left.size()) continue;
      append(hole.begin - at);
      left.begin += hole.size();
      at = hole.end;
    }
    append(left.size());
  }
  return keys;
}

Result<std::vector<HeadQueries>> SessionImpl::probe(const QuestionTokens& question) {
  MODELD_TRY_VOID(engine_.observe(retrieval_heads()));
  std::vector<BatchToken> batch;
  Place at = resident_.end;
  for (const std::vector<Token>* part : {&question.before, &question.content}) {
    for (const Token token : *part) {
      batch.push_back(BatchToken{token, at, kMain, false});
      ++at;
    }
  }
  MODELD_TRY_VOID(engine_.compute(batch));
  since_.recomputed += static_cast<std::int64_t>(batch.size());
  AttendedKeys keys = attended();
  keys.append(engine_.observation(), resident_.end);
  const auto all = static_cast<std::int32_t>(question.content.size());
  const std::int32_t asked = std::min(all, kQueryTokens);
  const std::int32_t first = static_cast<std::int32_t>(question.before.size()) + all - asked;
  std::vector<HeadQueries> queries = queries_of(engine_.geometry(), calibration_, index_->keys(), engine_.observation(),
                                                first, asked, resident_.end, keys);
  MODELD_TRY_VOID(engine_.observe({}));
  MODELD_TRY_VOID(trim_main(resident_.end));
  return queries;
}

Result<Search> SessionImpl::search(std::span<const HeadQueries> queries, const Question& question) const {
  Search search;
  search.ranges.reserve(blocks_done());
  for (std::size_t b = 0; b < blocks_done(); ++b) search.ranges.push_back(blocks_[b].range);
  search.asked = score_by_head(index_->keys(), queries, search.ranges, calibration_.rule);
  if (index_->meaning() != nullptr) {
    MODELD_TRY(const std::vector<std::vector<float>> meant, settings_.embedder->embed(std::array{question.text}));
    search.meaning = index_->meaning()->score(meant.front());
  }
  return search;
}

Ranked SessionImpl::rank(const Search& search, std::string_view words) const {
  Ranked ranked;
  std::vector<std::vector<double>> by_head = search.asked;
  for (std::size_t h = 0; h < search.written.size(); ++h) {
    for (std::size_t c = 0; c < by_head[h].size(); ++c) by_head[h][c] = std::max(by_head[h][c], search.written[h][c]);
  }
  ranked.lists.push_back(sum_of_heads(by_head));
  ranked.lists.push_back(index_->words().score(words));
  const double covered = index_->words().covered(words, ranked.lists.back());
  if (!search.meaning.empty()) ranked.lists.push_back(search.meaning);
  ranked.fused = fuse_ranks(ranked.lists, covered);
  return ranked;
}

Result<Relevance> SessionImpl::relevance(const QuestionTokens& tokens, const Question& question, Seconds& seconds) {
  Relevance relevance;
  relevance.scores.assign(blocks_done(), 0.0);
  if (question.oracle) {
    double score = 1.0;
    for (const StreamRange& wanted : *question.oracle) {
      for (std::size_t b = 0; b < blocks_done(); ++b) {
        if (!blocks_[b].range.overlaps(wanted) || relevance.scores[b] > 0.0) continue;
        relevance.scores[b] = score;
        relevance.blocks.push_back(b);
        relevance.ranges.push_back(blocks_[b].range);
      }
      score /= 2.0;
    }
    return relevance;
  }
  if (!question.retrieve) return relevance;
  const Stopwatch probing;
  MODELD_TRY(const std::vector<HeadQueries> probed, probe(tokens));
  seconds.probe = probing.seconds();
  const Stopwatch scoring;
  MODELD_TRY(relevance.search, search(probed, question));
  const Ranked ranked = rank(relevance.search, question.text);
  for (const BlockScore& one : ranked.fused) relevance.scores[one.block] = one.score;
  if (question.blocks) {
    const auto asked = static_cast<std::size_t>(std::max(0, *question.blocks));
    for (std::size_t i = 0; i < std::min(asked, ranked.fused.size()); ++i)
      relevance.blocks.push_back(ranked.fused[i].block);
  } else {
    const auto most = static_cast<std::size_t>(std::max(0, policy_.blocks));
    relevance.blocks = blocks_to_read(ranked.fused, ranked.lists, most);
    // Several facts of one kind are read without what stands around them: it would be more than they are.
    if (const std::size_t alike = std::min(most, blocks_alike(ranked.fused, ranked.lists)); alike > 1) {
      for (std::size_t i = 0; i < alike; ++i)
        relevance.ranges.push_back(what_matters(index_->keys(), probed, calibration_.rule,
                                                text_.sentences(blocks_[relevance.blocks[i]].range)));
    }
    const std::vector<std::size_t> further = follow_links(
        index_->words(), [this](std::size_t block) { return text_.text(blocks_[block].range); }, question.text,
        relevance.blocks, ranked.lists.front(), static_cast<std::size_t>(settings_.follow));
    relevance.blocks.insert(relevance.blocks.end(), further.begin(), further.end());
  }
  for (std::size_t i = relevance.ranges.size(); i < relevance.blocks.size(); ++i)
    relevance.ranges.push_back(blocks_[relevance.blocks[i]].range);
  seconds.scoring = scoring.seconds();
  return relevance;
}

Passage SessionImpl::passage(StreamRange range, double score) const {
  Passage passage;
  passage.range = range;
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
  std::vector<Passage> passages;
  for (const std::size_t b : best_blocks(relevant->scores, count))
    passages.push_back(passage(blocks_[b].range, relevant->scores[b]));
  return passages;
}

Result<std::vector<SelectorRanking>> SessionImpl::rankings(const QuestionTokens& tokens, const Question& question,
                                                           std::size_t count) {
  MODELD_TRY(const std::vector<HeadQueries> queries, probe(tokens));
  MODELD_TRY(const Search search, this->search(queries, question));
  const Ranked ranked = rank(search, question.text);
  ScoreList fused(search.ranges.size(), 0.0);
  for (const BlockScore& one : ranked.fused) fused[one.block] = one.score;
  std::vector<SelectorRanking> rankings;
  const auto add = [&](std::string_view selector, const ScoreList& scores) {
    SelectorRanking& ranking = rankings.emplace_back(SelectorRanking{std::string(selector), {}});
    for (const std::size_t b : best_blocks(scores, count)) ranking.blocks.push_back(search.ranges[b]);
  };
  add("fused", fused);
  constexpr std::array<std::string_view, 3> kNames = {"heads", "bm25", "embedder"};
  for (std::size_t l = 0; l < ranked.lists.size(); ++l) add(kNames[l], ranked.lists[l]);
  add("quest", score_quest(index_->keys(), queries, search.ranges, kBlockLimits.max_tokens));
  add("quest-16", score_quest(index_->keys(), queries, search.ranges, kQuestPage));
  add("means", score_means(index_->keys(), queries, search.ranges));
  return rankings;
}

Result<std::vector<SelectorRanking>> SessionImpl::compare_selectors(const Question& question, std::size_t count) {
  MODELD_TRY(const QuestionTokens tokens, tokenise(question));
  MODELD_TRY_VOID(ingest({}, nullptr));
  if (exact_) return std::vector<SelectorRanking>{};
  auto compared = rankings(tokens, question, count);
  if (!compared) note_failure(compared.error());
  return compared;
}

}  // namespace modeld
