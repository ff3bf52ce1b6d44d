// The model alone: a text computed densely, and questions asked of it, straight on the engine. The comparison for
// everything that a session does; the prompt's frame is the session's.
//
// Ownership: borrows the engine and uses its context; nothing else may use it meanwhile.
// Thread:    one.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/cancel.h"
#include "base/error.h"
#include "base/progress.h"
#include "engine/engine.h"
#include "session/frame.h"
#include "session/session.h"

namespace modeld {

struct DenseAnswer {
  std::string text;
  std::int32_t prompt_tokens = 0;
  double question_seconds = 0.0;
  double decode_seconds = 0.0;
  std::int32_t answer_tokens = 0;
};

class DenseRunner {
 public:
  /// Tokens beside the text that a context needs for frame, question and answer.
  static constexpr std::int32_t kRoom = 448;

  /// Opens a context for `text_tokens` + kRoom, past the trained window if that is what is asked for.
  static Result<DenseRunner> open(Engine& engine, std::int32_t text_tokens, std::int32_t threads);

  /// Forgets the text.
  Status reset();
  /// Computes more of the text, behind what is there. `stage` names the work in `progress`.
  Status extend(std::span<const Token> tokens, std::string_view stage = {}, const ProgressSink& progress = {},
                const CancelFlag* cancel = nullptr);
  /// Computes more of the text, and how likely each of these tokens but the first is; the last is not computed.
  Result<Scored> score(std::span<const Token> tokens, const CancelFlag* cancel = nullptr);
  /// Greedy; leaves the text as it was. Errors: question_too_long, cancelled, the engine's.
  Result<DenseAnswer> ask(const Question& question, const CancelFlag* cancel = nullptr);

  /// Tokens of the text computed so far.
  [[nodiscard]] std::int64_t text_tokens() const { return end_.get() - static_cast<std::int32_t>(frame_.head.size()); }

 private:
  DenseRunner(Engine& engine, PromptFrame frame) : engine_(&engine), frame_(std::move(frame)) {}
  Result<std::vector<Token>> question_tokens(const Question& question) const;
  Status generate(const Question& question, Place at, std::size_t row, DenseAnswer& answer, const CancelFlag* cancel);

  Engine* engine_;
  PromptFrame frame_;
  Place end_;
};

}  // namespace modeld
