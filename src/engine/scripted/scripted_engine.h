// The scripted engine behind open.h. scripted_engine.cc: the model, contexts and computing; surgery.cc: moving KV.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/scripted/cells.h"
#include "engine/scripted/open.h"
#include "engine/scripted/weights.h"

namespace modeld {

class ScriptedEngine final : public Engine {
 public:
  explicit ScriptedEngine(ScriptedOptions options);

  const ModelGeometry& geometry() const override { return geometry_; }
  Identity identity() const override;
  Result<std::vector<Token>> tokenize(std::string_view text, bool add_bos, bool parse_special) const override;
  std::string piece(Token token, bool special) const override;
  bool is_end(Token token) const override;
  Result<std::string> render_chat(std::span<const ChatMessage> messages, bool add_generation_prompt) const override;

  Status open_context(const ContextSpec& spec) override;
  void close_context() override;
  const ContextSpec& context() const override { return spec_; }

  Status compute(std::span<const BatchToken> batch) override;
  std::span<const float> logits(std::size_t index) const override;
  Status observe(const ObserveSpec& spec) override;
  const Observation& observation() const override { return observation_; }

  PlaceRange extent(SeqId seq) const override;
  Result<KvPayload> export_range(SeqId seq, PlaceRange places) override;
  Result<KvPayload> pack(const KvPayload& payload, KvType type) const override;
  Status evict(SeqId seq, PlaceRange places) override;
  Status admit(SeqId seq, const KvPayload& payload, Place at) override;
  Status rebase(SeqId seq, PlaceRange places, std::int32_t delta) override;
  Status share(SeqId from, SeqId to, PlaceRange places) override;

  EngineMemory memory() const override;
  std::int32_t cells_used() const override { return cells_ ? cells_->used() : 0; }
  void cancel() noexcept override { cancel_.request(); }
  void clear_cancel() noexcept override { cancel_.clear(); }
  std::string check_integrity() const override { return cells_ ? cells_->check_integrity() : std::string(); }

 private:
  using Output = std::array<float, ScriptedWeights::kValueDim>;

  /// Of every call on a context: one is open and not poisoned.
  [[nodiscard]] Status ready() const;
  [[nodiscard]] Status check_seq(SeqId seq) const;
  [[nodiscard]] Status check_range(SeqId seq, PlaceRange places) const;
  [[nodiscard]] Status check_batch(std::span<const BatchToken> batch) const;
  /// Sleeps for the token's scripted time; false once cancelled.
  [[nodiscard]] bool pass_time() const;
  void drop_newest(std::span<const BatchToken> computed);
  void compute_token(std::size_t row, const BatchToken& token);
  /// Records and rotates one head's vector, if it was asked for.
  void turn_and_record(int layer, int head, bool query, std::size_t row, Place place, std::span<float> vector);
  Output attend(int layer, int head, std::span<const float> query, const BatchToken& token);

  ScriptedOptions options_;
  std::shared_ptr<Lexicon> lexicon_;
  ScriptedWeights weights_;
  ModelGeometry geometry_;
  std::string model_digest_;
  std::uint64_t model_mark_ = 0;

  ContextSpec spec_;
  std::unique_ptr<ScriptedCells> cells_;
  bool poisoned_ = false;
  std::int64_t computes_ = 0;
  CancelFlag cancel_;

  ObserveSpec observe_;
  Observation observation_;
  /// Row of logits_ per batch index; -1: not asked for.
  std::vector<std::int32_t> logit_rows_;
  std::vector<float> logits_;
  std::vector<float> scores_;
};

}  // namespace modeld
