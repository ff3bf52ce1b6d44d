// The search for retrieval heads. How it goes:
//
//   1. A few contexts of synthetic prose with planted facts are computed in full attention, in the frame that a session
//      uses. Keys are recorded before RoPE; the rotated copy is made here, so that one pass gives the index's keys and
//      the attention's.
//   2. Each fact is asked for behind its context, in a sequence of its own; only the question's tokens are computed.
//      For every head: the largest share of attention that a question token puts on the fact's tokens.
//   3. The strongest heads are kept. Virtual distance and score rule are the pair that ranks the right blocks best when
//      the blocks of all contexts compete.
//
// Memory: un-rotated keys of all KV heads of all contexts as int8, and the rotated keys of one context in f32.
#include "session/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "base/check.h"
#include "model/rope.h"
#include "needles/needles.h"
#include "recall/key_index.h"
#include "session/calibrate_attention.h"
#include "session/frame.h"

namespace modeld {
namespace {

// The best of these is kept; the first wins ties.
constexpr std::array<std::int32_t, 4> kDistances = {512, 1024, 256, 1500};
constexpr std::array kRules = {ScoreRule::full, ScoreRule::sigmoid};
constexpr std::int32_t kCandidateTokens = 96;
// Of a question, in tokens of text: computing it, and looking at every head.
constexpr std::size_t kQuestionCost = 32;
constexpr std::string_view kStage = "calibrating heads";

struct QuestionTokens {
  std::vector<Token> tokens;
  /// First token of the question's own words.
  std::size_t content = 0;
  /// Its first row in the recorded queries and keys.
  std::size_t row = 0;
  /// What it asks for, in the context at hand.
  StreamRange fact;
};

/// A context before it is computed.
struct Prepared {
  std::vector<Token> tokens;
  std::vector<QuestionTokens> questions;
};

/// One question as it was asked: what the ranking of distances and rules needs of it.
struct Asked {
  /// The fact's tokens, in the pooled key index.
  StreamRange fact;
  /// By head: content tokens × key_dim, un-rotated; and their log-sum-exp over what a probe pass would attend.
  std::vector<std::vector<float>> queries;
  std::vector<std::vector<float>> local_lse;
};

/// Index of the token that holds byte `at` of the text that `tokens` spell.
std::size_t token_at(const Engine& engine, std::span<const Token> tokens, std::size_t text_bytes, std::size_t at) {
  std::vector<std::size_t> ends;
  std::size_t spelled = 0;
  for (const Token token : tokens) ends.push_back(spelled += engine.piece(token).size());
  // Some tokenizers spell a space before the text.
  if (spelled > text_bytes) at += spelled - text_bytes;
  return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin());
}

/// Facts for all contexts, each context's share with kinds mixed; none answers another's question.
std::vector<std::vector<Needle>> share_needles(const CalibrationSettings& settings) {
  const auto contexts = static_cast<std::size_t>(settings.contexts);
  const auto wanted = contexts * static_cast<std::size_t>(settings.questions_per_context);
  std::vector<Needle> all;
  for (const auto& [kind, tenths] :
       {std::pair{NeedleKind::lookalike, 4}, std::pair{NeedleKind::paraphrase, 2}, std::pair{NeedleKind::single, 4}}) {
    const std::size_t share =
        kind == NeedleKind::single ? wanted - all.size() : wanted * static_cast<std::size_t>(tenths) / 10;
    const std::vector<Needle> made = make_needles(kind, std::min(share, needles_max(kind)), settings.seed);
    all.insert(all.end(), made.begin(), made.end());
  }
  std::vector<std::vector<Needle>> shared(contexts);
  for (std::size_t i = 0; i < all.size(); ++i) shared[i % contexts].push_back(all[i]);
  return shared;
}

class HeadSearch {
 public:
  HeadSearch(Engine& engine, const CalibrationSettings& settings, const ProgressSink& progress,
             const CancelFlag* cancel);
  Result<Calibration> run();

 private:
  Result<Prepared> prepare(std::span<const Needle> needles, std::uint64_t seed) const;
  Status run_context(Prepared& context);
  Result<PlantedText> write_text(std::span<const Needle> needles, std::uint64_t seed) const;
  Status compute(std::span<const Token> tokens, std::size_t first_place);
  Status read_context(std::span<const Token> tokens);
  Status ask_all(std::vector<QuestionTokens>& questions);
  void look_at(const QuestionTokens& question);
  Result<QuestionTokens> question_tokens(std::string_view question) const;
  void look(std::size_t head, const QuestionTokens& question, Asked& asked);
  [[nodiscard]] std::vector<StreamRange> candidates() const;
  [[nodiscard]] double reciprocal_rank(const Calibration& trial, const Asked& asked,
                                       std::span<const StreamRange> candidates) const;
  void choose_scoring(Calibration& calibration) const;
  [[nodiscard]] const LayerGeometry& layer(std::size_t head) const {
    return engine_.geometry().layers[static_cast<std::size_t>(heads_[head].layer)];
  }
  Status go_on(std::size_t tokens);

  Engine& engine_;
  CalibrationSettings settings_;
  const ProgressSink& progress_;
  const CancelFlag* cancel_;
  PromptFrame frame_;
  std::size_t text_tokens_ = 0;
  std::size_t sinks_ = 0;
  std::size_t recent_ = 0;

  std::int32_t key_dim_ = 0;
  std::vector<HeadRef> heads_;
  std::vector<std::size_t> kv_of_;  // of heads_[i]: index into kv_heads_
  std::vector<KvHeadRef> kv_heads_;
  std::vector<std::vector<double>> frequencies_;  // by layer

  std::vector<KeyTiles> rotated_;                                // of the context at hand, by KV head
  std::vector<std::vector<float>> unrotated_;                    // the same before RoPE, row-major
  std::size_t context_tokens_ = 0;                               // of the context at hand
  std::unique_ptr<KeyIndex> index_;                              // of all contexts, one behind the other
  std::vector<std::pair<std::int64_t, std::int64_t>> contexts_;  // begin and end in the index
  std::vector<double> mass_;                                     // by head, summed over questions
  std::vector<Asked> asked_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

HeadSearch::HeadSearch(Engine& engine, const CalibrationSettings& settings, const ProgressSink& progress,
                       const CancelFlag* cancel)
    : engine_(engine), settings_(settings), progress_(progress), cancel_(cancel) {
  const ModelGeometry& geometry = engine.geometry();
  text_tokens_ = static_cast<std::size_t>(std::min(settings.context_tokens, geometry.trained_window * 3 / 4));
  sinks_ = std::min<std::size_t>(64, text_tokens_ / 16);
  recent_ = std::min<std::size_t>(512, text_tokens_ / 4);
  // The index holds keys of one width: that of most KV heads.
  std::map<std::int32_t, std::int32_t> widths;
  for (const LayerGeometry& l : geometry.layers) widths[l.key_dim] += l.kv_heads;
  key_dim_ = std::max_element(widths.begin(), widths.end(), [](const auto& a, const auto& b) {
               return a.second < b.second;
             })->first;
  for (std::size_t l = 0; l < geometry.layers.size(); ++l) {
    const LayerGeometry& layer = geometry.layers[l];
    frequencies_.push_back(rope_frequencies(layer.rope));
    if (layer.key_dim != key_dim_) continue;
    const std::size_t first_kv = kv_heads_.size();
    for (std::int32_t k = 0; k < layer.kv_heads; ++k) kv_heads_.push_back({static_cast<std::int32_t>(l), k});
    for (std::int32_t h = 0; h < layer.heads; ++h) {
      heads_.push_back({static_cast<std::int32_t>(l), h});
      kv_of_.push_back(first_kv + static_cast<std::size_t>(kv_head_of(geometry, heads_.back()).kv_head));
    }
  }
  mass_.assign(heads_.size(), 0.0);
  index_ = std::make_unique<KeyIndex>(kv_heads_, key_dim_);
}

Status HeadSearch::go_on(std::size_t tokens) {
  done_ += tokens;
  report(progress_, kStage, done_, total_, "tokens");
  if (cancel_ != nullptr && cancel_->requested())
    return fail(ErrorCode::cancelled, "Calibration was cancelled; it starts again the next time.");
  return {};
}

Result<PlantedText> HeadSearch::write_text(std::span<const Needle> needles, std::uint64_t seed) const {
  // How many bytes a token spells differs by model: measure it on a first piece.
  const std::string sample = filler_prose(4096, seed);
  MODELD_TRY(const std::vector<Token> tokens, engine_.tokenize(sample, false, false));
  if (tokens.empty())
    return fail(ErrorCode::calibration_failed, "The model's tokenizer gave no tokens for plain prose.");
  const std::size_t bytes = sample.size() * text_tokens_ / tokens.size();
  // Facts stay clear of the recent window, which is not retrieved from.
  const double limit = 0.95 * (1.0 - static_cast<double>(recent_) / static_cast<double>(text_tokens_));
  std::mt19937_64 random(seed);
  std::vector<double> depths;
  for (std::size_t i = 0; i < needles.size(); ++i) {
    const double within = static_cast<double>(random() >> 11) * 0x1p-53;
    depths.push_back(0.05 + (limit - 0.05) * (static_cast<double>(i) + within) / static_cast<double>(needles.size()));
  }
  return plant(filler_prose(bytes, seed + 1), needles, depths);
}

Status HeadSearch::compute(std::span<const Token> tokens, std::size_t first_place) {
  std::vector<BatchToken> batch;
  batch.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    batch.push_back({tokens[i], Place(static_cast<std::int32_t>(first_place + i)), 0, false});
  return engine_.compute(batch);
}

Status HeadSearch::read_context(std::span<const Token> tokens) {
  const ModelGeometry& geometry = engine_.geometry();
  const auto dim = static_cast<std::size_t>(key_dim_);
  rotated_.assign(kv_heads_.size(), KeyTiles(key_dim_));
  unrotated_.assign(kv_heads_.size(), {});
  MODELD_TRY_VOID(engine_.observe({{}, kv_heads_, /*before_rope=*/true}));
  const auto step = static_cast<std::size_t>(std::min(engine_.context().batch, 512));
  for (std::size_t begin = 0; begin < tokens.size(); begin += step) {
    const auto part = tokens.subspan(begin, std::min(step, tokens.size() - begin));
    MODELD_TRY_VOID(compute(part, begin));
    const Observation& seen = engine_.observation();
    for (std::size_t k = 0; k < kv_heads_.size(); ++k) {
      const auto l = static_cast<std::size_t>(kv_heads_[k].layer);
      unrotated_[k].insert(unrotated_[k].end(), seen.keys[k].begin(), seen.keys[k].end());
      for (std::size_t i = 0; i < part.size(); ++i) {
        std::vector<float> key(seen.keys[k].begin() + static_cast<std::ptrdiff_t>(i * dim),
                               seen.keys[k].begin() + static_cast<std::ptrdiff_t>((i + 1) * dim));
        rotate(key, geometry.layers[l].rope, frequencies_[l], static_cast<double>(begin + i));
        rotated_[k].append(key);
      }
    }
    MODELD_TRY_VOID(go_on(part.size()));
  }
  context_tokens_ = tokens.size();
  const std::int64_t index_begin = index_->tokens();
  index_->append(unrotated_, static_cast<std::int32_t>(tokens.size()));
  contexts_.emplace_back(index_begin, index_->tokens());
  return {};
}

Result<QuestionTokens> HeadSearch::question_tokens(std::string_view question) const {
  const std::string text = frame_.before_question + std::string(question);
  QuestionTokens result;
  MODELD_TRY(result.tokens, engine_.tokenize(text, false, false));
  result.content = token_at(engine_, result.tokens, text.size(), frame_.before_question.size());
  MODELD_CHECK(result.content < result.tokens.size());
  return result;
}

// Everything about one head and one question: its attention on the fact, and what the ranking will need.
void HeadSearch::look(std::size_t head, const QuestionTokens& question, Asked& asked) {
  const LayerGeometry& geometry = layer(head);
  const auto& frequencies = frequencies_[static_cast<std::size_t>(heads_[head].layer)];
  const KeyTiles& keys = rotated_[kv_of_[head]];
  const auto dim = static_cast<std::size_t>(key_dim_);
  const auto window = static_cast<std::size_t>(geometry.window);
  const std::vector<float>& recorded = engine_.observation().queries[head];
  const std::size_t text_end = context_tokens_;
  std::vector<float> scores(text_end + question.tokens.size());
  double best = 0.0;
  for (std::size_t t = question.content; t < question.tokens.size(); ++t) {
    const std::vector<float> plain(recorded.begin() + static_cast<std::ptrdiff_t>((question.row + t) * dim),
                                   recorded.begin() + static_cast<std::ptrdiff_t>((question.row + t + 1) * dim));
    const std::size_t place = text_end + t;
    const std::size_t begin = window > 0 && place + 1 > window ? place + 1 - window : 0;
    std::vector<float> query = plain;
    rotate(query, geometry.rope, frequencies, static_cast<double>(place));
    const std::span<float> visible = std::span(scores).first(place + 1 - begin);
    keys.scores(query, begin, place + 1, visible);
    const auto relative = [begin](std::int64_t at) {
      return static_cast<std::size_t>(std::max<std::int64_t>(0, at - static_cast<std::int64_t>(begin)));
    };
    best =
        std::max(best, softmax_share(visible, relative(question.fact.begin.get()), relative(question.fact.end.get())));

    // A probe pass attends sinks, recent window and question, with the recent window moved up to the sinks.
    const std::size_t recent_begin = std::max(begin, text_end - recent_);
    double lse = log_sum_exp_of(visible.subspan(recent_begin - begin));
    const std::size_t probe_place = sinks_ + recent_ + t;
    if (window == 0 || probe_place < window) {
      query = plain;
      rotate(query, geometry.rope, frequencies, static_cast<double>(probe_place));
      std::vector<float> sink_scores(sinks_);
      keys.scores(query, 0, sinks_, sink_scores);
      const double sink_lse = log_sum_exp_of(sink_scores);
      const double top = std::max(lse, sink_lse);
      lse = top + std::log(std::exp(lse - top) + std::exp(sink_lse - top));
    }
    asked.queries[head].insert(asked.queries[head].end(), plain.begin(), plain.end());
    asked.local_lse[head].push_back(static_cast<float>(lse));
  }
  mass_[head] += best;
}

void HeadSearch::look_at(const QuestionTokens& question) {
  const Observation& seen = engine_.observation();
  const auto dim = static_cast<std::size_t>(key_dim_);
  for (std::size_t k = 0; k < kv_heads_.size(); ++k) {
    const auto l = static_cast<std::size_t>(kv_heads_[k].layer);
    for (std::size_t t = 0; t < question.tokens.size(); ++t) {
      const auto row = seen.keys[k].begin() + static_cast<std::ptrdiff_t>((question.row + t) * dim);
      std::vector<float> key(row, row + key_dim_);
      rotate(key, engine_.geometry().layers[l].rope, frequencies_[l], static_cast<double>(context_tokens_ + t));
      rotated_[k].append(key);
    }
  }
  Asked asked;
  asked.queries.resize(heads_.size());
  asked.local_lse.resize(heads_.size());
  for (std::size_t head = 0; head < heads_.size(); ++head) look(head, question, asked);
  const std::int64_t shift = contexts_.back().first;
  asked.fact = {question.fact.begin + shift, question.fact.end + shift};
  asked_.push_back(std::move(asked));
  for (KeyTiles& keys : rotated_) keys.truncate(context_tokens_);
}

// All questions at once, each in a sequence of its own behind the shared context: one pass instead of many short ones.
Status HeadSearch::ask_all(std::vector<QuestionTokens>& questions) {
  std::vector<BatchToken> batch;
  for (std::size_t q = 0; q < questions.size(); ++q) {
    const auto seq = static_cast<SeqId>(q + 1);
    MODELD_TRY_VOID(engine_.share(0, seq, {Place(0), Place(static_cast<std::int32_t>(context_tokens_))}));
    questions[q].row = batch.size();
    for (std::size_t t = 0; t < questions[q].tokens.size(); ++t)
      batch.push_back({questions[q].tokens[t], Place(static_cast<std::int32_t>(context_tokens_ + t)), seq, false});
  }
  MODELD_TRY_VOID(engine_.observe({heads_, kv_heads_, /*before_rope=*/true}));
  MODELD_TRY_VOID(engine_.compute(batch));
  for (const QuestionTokens& question : questions) {
    look_at(question);
    MODELD_TRY_VOID(go_on(kQuestionCost));
  }
  return {};
}

Result<Prepared> HeadSearch::prepare(std::span<const Needle> needles, std::uint64_t seed) const {
  MODELD_TRY(const PlantedText planted, write_text(needles, seed));
  MODELD_TRY(const std::vector<Token> text, engine_.tokenize(planted.text, false, false));
  Prepared context;
  context.tokens = frame_.head;
  context.tokens.insert(context.tokens.end(), text.begin(), text.end());
  for (const PlantedNeedle& needle : planted.needles) {
    const auto at = [&](std::size_t byte) {
      const std::size_t token = token_at(engine_, text, planted.text.size(), byte);
      return StreamPos(static_cast<std::int64_t>(frame_.head.size() + token));
    };
    MODELD_TRY(QuestionTokens question, question_tokens(needle.needle.question));
    question.fact = {at(needle.begin), at(needle.end - 1) + 1};
    context.questions.push_back(std::move(question));
  }
  return context;
}

Status HeadSearch::run_context(Prepared& context) {
  std::size_t cells = context.tokens.size();
  for (const QuestionTokens& question : context.questions) cells += question.tokens.size();
  ContextSpec spec;
  spec.cells = static_cast<std::int32_t>(cells);
  spec.sequences = static_cast<std::int32_t>(context.questions.size()) + 1;
  spec.threads = settings_.threads;
  MODELD_TRY_VOID(engine_.open_context(spec));
  MODELD_TRY_VOID(read_context(context.tokens));
  return ask_all(context.questions);
}

std::vector<StreamRange> HeadSearch::candidates() const {
  std::vector<StreamRange> ranges;
  for (const auto& [begin, end] : contexts_) {
    const std::int64_t last = end - static_cast<std::int64_t>(recent_);
    for (std::int64_t at = begin + static_cast<std::int64_t>(sinks_); at < last; at += kCandidateTokens)
      ranges.push_back({StreamPos(at), StreamPos(std::min(at + kCandidateTokens, last))});
  }
  return ranges;
}

double HeadSearch::reciprocal_rank(const Calibration& trial, const Asked& asked,
                                   std::span<const StreamRange> candidates) const {
  const auto dim = static_cast<std::size_t>(key_dim_);
  std::vector<HeadQueries> queries;
  for (const HeadMass& chosen : trial.heads) {
    const auto head = static_cast<std::size_t>(std::find(heads_.begin(), heads_.end(), chosen.head) - heads_.begin());
    const auto& frequencies = frequencies_[static_cast<std::size_t>(chosen.head.layer)];
    HeadQueries q{chosen.head, kv_of_[head], asked.queries[head], asked.local_lse[head]};
    for (std::size_t t = 0; t * dim < q.queries.size(); ++t)
      rotate(std::span(q.queries).subspan(t * dim, dim), layer(head).rope, frequencies,
             static_cast<double>(trial.distance));
    queries.push_back(std::move(q));
  }
  const std::vector<double> scores = score_blocks(*index_, queries, candidates, trial.rule);
  double right = 0.0;
  for (std::size_t b = 0; b < candidates.size(); ++b)
    if (candidates[b].overlaps(asked.fact)) right = std::max(right, scores[b]);
  const auto better = std::count_if(scores.begin(), scores.end(), [right](double s) { return s > right; });
  return 1.0 / static_cast<double>(better + 1);
}

void HeadSearch::choose_scoring(Calibration& calibration) const {
  const std::vector<StreamRange> ranges = candidates();
  double best = -1.0;
  Calibration trial = calibration;
  for (const std::int32_t distance : kDistances) {
    for (const ScoreRule rule : kRules) {
      trial.distance = distance;
      trial.rule = rule;
      double sum = 0.0;
      for (const Asked& asked : asked_) sum += reciprocal_rank(trial, asked, ranges);
      if (sum <= best) continue;
      best = sum;
      calibration.distance = distance;
      calibration.rule = rule;
    }
  }
}

Result<Calibration> HeadSearch::run() {
  const auto begin = std::chrono::steady_clock::now();
  MODELD_TRY(frame_, make_frame(engine_));
  const std::vector<std::vector<Needle>> needles = share_needles(settings_);
  std::vector<Prepared> contexts;
  for (const std::vector<Needle>& facts : needles) {
    MODELD_TRY(Prepared context, prepare(facts, settings_.seed + 17 * (contexts.size() + 1)));
    total_ += context.tokens.size() + context.questions.size() * kQuestionCost;
    contexts.push_back(std::move(context));
  }
  for (Prepared& context : contexts) MODELD_TRY_VOID(run_context(context));
  Calibration calibration;
  const Identity identity = engine_.identity();
  calibration.model = identity.model;
  calibration.engine = identity.engine;
  std::vector<HeadMass> all;
  all.reserve(heads_.size());
  for (std::size_t h = 0; h < heads_.size(); ++h)
    all.push_back({heads_[h], mass_[h] / static_cast<double>(std::max<std::size_t>(1, asked_.size()))});
  MODELD_TRY(calibration.heads, choose_heads(engine_.geometry(), std::move(all), settings_.index_share));
  choose_scoring(calibration);
  calibration.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return calibration;
}

}  // namespace

Result<Calibration> calibrate_heads(Engine& engine, const CalibrationSettings& settings, const ProgressSink& progress,
                                    const CancelFlag* cancel) {
  if (settings.contexts < 1 || settings.context_tokens < 64 || settings.questions_per_context < 1)
    return fail(ErrorCode::bad_argument, "Calibration needs at least one context of 64 tokens and one question.");
  if (engine.geometry().layers.empty())
    return fail(ErrorCode::calibration_failed, "The model has no attention layers, so it has no retrieval heads.");
  Result<Calibration> result = HeadSearch(engine, settings, progress, cancel).run();
  engine.close_context();
  return result;
}

std::filesystem::path calibration_path(const std::filesystem::path& cache_dir, const Identity& identity) {
  std::string engine = identity.engine;
  for (char& c : engine)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  return cache_dir / "calibrations" / fmt::format("{}-{}.json", identity.model, engine);
}

}  // namespace modeld
