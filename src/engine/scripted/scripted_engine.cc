#include "engine/scripted/scripted_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include "base/digest.h"
#include "model/rope.h"

namespace modeld {
namespace {

// Below this distance from the highest score a weight is less than half a unit in the last place of any sum it could
// join.
constexpr float kNegligible = 30.0F;

ModelGeometry describe(const ScriptedOptions& options, const Lexicon& lexicon, const ScriptedWeights& weights) {
  ModelGeometry geometry;
  geometry.architecture = "scripted";
  geometry.name = fmt::format("scripted, seed {}", options.seed);
  geometry.trained_window = options.trained_window;
  geometry.vocabulary = lexicon.size();
  geometry.embedding = ScriptedWeights::kEmbedding;
  for (const std::int32_t window : options.windows) {
    geometry.layers.push_back(
        {ScriptedWeights::kHeads, 1, ScriptedWeights::kKeyDim, ScriptedWeights::kValueDim, window, weights.rope()});
  }
  geometry.weight_bytes = static_cast<std::uint64_t>(weights.bytes());
  geometry.has_chat_template = options.chat_template;
  return geometry;
}

std::string rope_text(const Rope& rope) {
  const char* style = rope.style == RopeStyle::none ? "none" : rope.style == RopeStyle::norm ? "norm" : "neox";
  return fmt::format("{} dims={} base={} scale={}", style, rope.dims, rope.freq_base, rope.freq_scale);
}

tl::unexpected<Error> misuse(std::string message) { return fail(ErrorCode::engine_misuse, std::move(message)); }

}  // namespace

std::unique_ptr<Engine> open_scripted(ScriptedOptions options) {
  return std::make_unique<ScriptedEngine>(std::move(options));
}

ScriptedEngine::ScriptedEngine(ScriptedOptions options)
    : options_(std::move(options)),
      lexicon_(options_.lexicon ? options_.lexicon : std::make_shared<Lexicon>()),
      weights_(options_.seed, lexicon_->size(), options_.rope),
      geometry_(describe(options_, *lexicon_, weights_)) {
  const std::string model =
      fmt::format("seed={} vocabulary={} rope=({}) windows={},{} trained={}", options_.seed, lexicon_->size(),
                  rope_text(weights_.rope()), options_.windows[0], options_.windows[1], options_.trained_window);
  model_digest_ = sha256(std::as_bytes(std::span(model))).hex();
  model_mark_ = Hasher().text(model_digest_).finish().low;
}

Identity ScriptedEngine::identity() const {
  Identity id;
  id.engine = "scripted 1";
  id.model = model_digest_;
  id.tokenizer = "words 1";
  id.chat_template = options_.chat_template ? "chatml" : "";
  id.adds_bos = options_.adds_bos;
  id.kv_type = cells_ ? std::string(to_text(spec_.kv_type)) : std::string();
  id.rope = rope_text(weights_.rope());
  return id;
}

Result<std::vector<Token>> ScriptedEngine::tokenize(std::string_view text, bool add_bos, bool parse_special) const {
  std::vector<Token> tokens = lexicon_->tokenize(text, parse_special);
  if (add_bos && options_.adds_bos) tokens.insert(tokens.begin(), Lexicon::kBos);
  return tokens;
}

std::string ScriptedEngine::piece(Token token, bool special) const { return lexicon_->piece(token, special); }

bool ScriptedEngine::is_end(Token token) const { return token == Lexicon::kEndOfText || token == Lexicon::kChatEnd; }

Result<std::string> ScriptedEngine::render_chat(std::span<const ChatMessage> messages,
                                                bool add_generation_prompt) const {
  if (!options_.chat_template) {
    return fail(ErrorCode::unsupported_operation, "This model has no chat template. Give it plain text to continue.");
  }
  std::string text;
  for (const auto& [role, content] : messages) text += fmt::format("<|im_start|>{}\n{}<|im_end|>\n", role, content);
  if (add_generation_prompt) text += "<|im_start|>assistant\n";
  return text;
}

Status ScriptedEngine::open_context(const ContextSpec& spec) {
  if (spec.cells <= 0 || spec.sequences <= 0 || spec.batch < 0 || spec.threads < 0) {
    return fail(
        ErrorCode::bad_argument, "Cells and sequences must be above 0, batch and threads 0 or more.",
        {{"cells", spec.cells}, {"sequences", spec.sequences}, {"batch", spec.batch}, {"threads", spec.threads}});
  }
  const std::int64_t kv = spec.cells * geometry_.kv_bytes_per_token(spec.kv_type);
  const std::int64_t needed = weights_.bytes() + kv + ScriptedCells::working_bytes(spec.cells);
  if (options_.device_bytes > 0 && needed > options_.device_bytes) {
    return fail(ErrorCode::device_budget_exceeded, "The device is too small for so many cells. Ask for fewer.",
                {{"needed_bytes", needed}, {"device_bytes", options_.device_bytes}, {"cells", spec.cells}});
  }
  close_context();
  spec_ = spec;
  if (spec_.batch == 0) spec_.batch = ContextSpec{}.batch;
  spec_.threads = 1;
  cells_ = std::make_unique<ScriptedCells>(spec.cells, spec.sequences, spec.kv_type);
  return {};
}

void ScriptedEngine::close_context() {
  cells_.reset();
  spec_ = ContextSpec{};
  poisoned_ = false;
  observation_ = {};
  logit_rows_.clear();
  logits_.clear();
}

Status ScriptedEngine::ready() const {
  if (!cells_) return misuse("No context is open. Open one first.");
  if (poisoned_) return fail(ErrorCode::engine_poisoned, "The engine failed earlier. Open its context again.");
  return {};
}

Status ScriptedEngine::check_seq(SeqId seq) const {
  MODELD_TRY_VOID(ready());
  if (seq >= 0 && seq < spec_.sequences) return {};
  return fail(ErrorCode::engine_misuse, "There is no such sequence in this context.",
              {{"sequence", seq}, {"sequences", spec_.sequences}});
}

Status ScriptedEngine::check_range(SeqId seq, PlaceRange places) const {
  MODELD_TRY_VOID(check_seq(seq));
  if (places.begin.get() >= 0 && places.begin <= places.end) return {};
  return fail(ErrorCode::engine_misuse, "The range of places is negative or reversed.",
              {{"begin", places.begin.get()}, {"end", places.end.get()}});
}

Status ScriptedEngine::check_batch(std::span<const BatchToken> batch) const {
  MODELD_TRY_VOID(ready());
  if (batch.empty()) return misuse("The batch is empty.");
  std::map<SeqId, Place> next;
  for (const BatchToken& token : batch) {
    MODELD_TRY_VOID(check_seq(token.seq));
    if (token.token < 0 || token.token >= geometry_.vocabulary) {
      return fail(ErrorCode::engine_misuse, "The vocabulary has no such token.", {{"token", token.token}});
    }
    const auto place = token.place;
    if (place.get() < 0 || place.get() == std::numeric_limits<std::int32_t>::max()) {
      return fail(ErrorCode::engine_misuse, "The place is out of range.", {{"place", place.get()}});
    }
    const auto held = extent(token.seq);
    const auto [known, fresh] = next.try_emplace(token.seq, held.empty() ? place : held.end);
    if (place != known->second) {
      return fail(ErrorCode::engine_misuse, "New places must follow the sequence's highest place without a gap.",
                  {{"place", place.get()}, {"expected_place", known->second.get()}, {"sequence", token.seq}});
    }
    ++known->second;
  }
  if (std::cmp_greater(batch.size(), cells_->free())) {
    return fail(ErrorCode::engine_no_cells, "The batch needs more cells than are free. Evict some first.",
                {{"needed_cells", static_cast<std::int64_t>(batch.size())}, {"free_cells", cells_->free()}});
  }
  return {};
}

bool ScriptedEngine::pass_time() const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSlice{20'000};
  const auto until = Clock::now() + options_.token_time;
  while (!cancel_.requested()) {
    if (options_.token_time.count() == 0) return true;
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now());
    if (left.count() <= 0) return true;
    std::this_thread::sleep_for(std::min(left, kSlice));
  }
  return false;
}

void ScriptedEngine::drop_newest(std::span<const BatchToken> computed) {
  for (const BatchToken& token : computed) cells_->drop(token.seq, {token.place, token.place + 1});
}

Status ScriptedEngine::compute(std::span<const BatchToken> batch) {
  MODELD_TRY_VOID(check_batch(batch));
  if (cancel_.requested()) return fail(ErrorCode::cancelled, "Cancelled before the first token.");
  logit_rows_.assign(batch.size(), -1);
  const auto wanted = std::ranges::count(batch, true, &BatchToken::logits);
  logits_.assign(static_cast<std::size_t>(wanted) * static_cast<std::size_t>(geometry_.vocabulary), 0.0F);
  observation_ = {};
  const bool observing = !observe_.queries.empty() || !observe_.keys.empty();
  observation_.tokens = observing ? static_cast<std::int32_t>(batch.size()) : 0;
  const std::vector<float> rows(batch.size() * ScriptedWeights::kKeyDim);
  observation_.queries.assign(observe_.queries.size(), rows);
  observation_.keys.assign(observe_.keys.size(), rows);
  const bool fails = ++computes_ == options_.fail_at_compute;
  std::int32_t rows_used = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (fails && i == batch.size() / 2) {
      poisoned_ = true;
      return fail(ErrorCode::engine_failed, "The scripted failure happened. Open the context again.");
    }
    if (!pass_time()) {
      drop_newest(batch.first(i));
      logit_rows_.clear();
      observation_ = {};
      return fail(ErrorCode::cancelled, "Cancelled; nothing of the batch was kept.");
    }
    if (batch[i].logits) logit_rows_[i] = rows_used++;
    compute_token(i, batch[i]);
  }
  return {};
}

void ScriptedEngine::turn_and_record(int layer, int head, bool query, std::size_t row, Place place,
                                     std::span<float> vector) {
  const auto record = [&] {
    const auto copy = [&](std::vector<float>& out) {
      std::ranges::copy(vector, out.begin() + static_cast<std::ptrdiff_t>(row * ScriptedWeights::kKeyDim));
    };
    for (std::size_t i = 0; query && i < observe_.queries.size(); ++i) {
      if (observe_.queries[i] == HeadRef{layer, head}) copy(observation_.queries[i]);
    }
    for (std::size_t i = 0; !query && i < observe_.keys.size(); ++i) {
      if (observe_.keys[i] == KvHeadRef{layer, head}) copy(observation_.keys[i]);
    }
  };
  if (observe_.before_rope) record();
  rotate(vector, weights_.rope(), weights_.frequencies(), place.get());
  if (!observe_.before_rope) record();
}

void ScriptedEngine::compute_token(std::size_t row, const BatchToken& token) {
  const std::int32_t cell = cells_->take(token.seq, token.place);
  std::array<Output, ScriptedWeights::kHeads> below{};
  std::array<Output, ScriptedWeights::kHeads> out{};
  std::array<float, ScriptedWeights::kKeyDim> vector{};
  for (int layer = 0; layer < ScriptedWeights::kLayers; ++layer) {
    weights_.key(layer, token.token, below[0], below[1], vector);
    turn_and_record(layer, 0, false, row, token.place, vector);
    cells_->store(cell, layer, vector, weights_.embedding(token.token));
    for (int head = 0; head < ScriptedWeights::kHeads; ++head) {
      weights_.query(layer, head, token.token, below[0], vector);
      turn_and_record(layer, head, true, row, token.place, vector);
      // The last layer's output is read by the logits alone.
      if (layer + 1 < ScriptedWeights::kLayers || token.logits) {
        out[static_cast<std::size_t>(head)] = attend(layer, head, vector, token);
      }
    }
    below = out;
  }
  if (!token.logits) return;
  const auto vocabulary = static_cast<std::size_t>(geometry_.vocabulary);
  const auto at = static_cast<std::size_t>(logit_rows_[row]) * vocabulary;
  weights_.logits(out[0], out[1], std::span(logits_).subspan(at, vocabulary));
}

// Softmax over what the sequence holds at places up to the token's own, in the order of places: which cells they lie in
// and what else is in the cache does not change a bit.
ScriptedEngine::Output ScriptedEngine::attend(int layer, int head, std::span<const float> query,
                                              const BatchToken& token) {
  const std::int32_t window = options_.windows.at(static_cast<std::size_t>(layer));
  PlaceRange seen{Place(0), token.place + 1};
  if (window > 0) seen.begin = std::max(seen.begin, seen.end - window);
  const auto entries = cells_->entries(token.seq, seen);
  const int dims = ScriptedWeights::active_dims(layer, head);
  const float scale = 1.0F / std::sqrt(static_cast<float>(ScriptedWeights::kKeyDim));
  scores_.resize(entries.size());
  float top = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    scores_[i] = scale * fixed_dot(query.data(), cells_->key(layer, entries[i].cell), dims);
    top = std::max(top, scores_[i]);
  }
  Output out{};
  float sum = 0.0F;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (scores_[i] < top - kNegligible) continue;
    const float weight = std::exp(scores_[i] - top);
    const float* value = cells_->value(layer, entries[i].cell);
    sum += weight;
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += weight * value[d];
  }
  for (float& x : out) x /= sum;
  return out;
}

std::span<const float> ScriptedEngine::logits(std::size_t index) const {
  if (index >= logit_rows_.size() || logit_rows_[index] < 0 || poisoned_) return {};
  const auto vocabulary = static_cast<std::size_t>(geometry_.vocabulary);
  return std::span(logits_).subspan(static_cast<std::size_t>(logit_rows_[index]) * vocabulary, vocabulary);
}

Status ScriptedEngine::observe(const ObserveSpec& spec) {
  MODELD_TRY_VOID(ready());
  const auto bad = [](std::int32_t layer, std::int32_t head, std::int32_t heads) {
    return layer < 0 || layer >= ScriptedWeights::kLayers || head < 0 || head >= heads;
  };
  for (const auto& [layer, head] : spec.queries) {
    if (bad(layer, head, ScriptedWeights::kHeads)) return misuse("The model has no such query head.");
  }
  for (const auto& [layer, head] : spec.keys) {
    if (bad(layer, head, 1)) return misuse("The model has no such KV head.");
  }
  observe_ = spec;
  return {};
}

}  // namespace modeld
