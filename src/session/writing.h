// An answer while it is being written: tokens are sampled, held back until it is sure that they stay, and shown.
//
// Invariant: what was shown is never taken back, and is whole UTF-8 characters.
// Thread:    the session's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "session/sampler.h"
#include "session/session.h"

namespace modeld {

class Writing {
 public:
  /// At most `limit` tokens; ends at a line end if `one_line`.
  Writing(const Engine& engine, const Question& question, std::int32_t limit, bool one_line)
      : engine_(engine), sampler_(question.sampling), limit_(limit), one_line_(one_line) {}

  /// Samples the next token and holds it back. Not once done().
  Token next(std::span<const float> logits);
  /// The answer is complete: an end token, a line end, or the limit.
  [[nodiscard]] bool done() const { return done_; }
  /// Everything held back stays: shows it.
  void keep(const TextSink& sink);
  /// Takes back what is held back.
  void take_back();

  /// Tokens that stay.
  [[nodiscard]] std::span<const Token> kept() const { return std::span(tokens_).first(kept_); }
  /// All tokens so far, those held back too, as text.
  [[nodiscard]] std::string all_text() const;
  [[nodiscard]] std::size_t held() const { return tokens_.size() - kept_; }

  [[nodiscard]] bool finished() const { return finished_; }
  /// Makes what was written the answer.
  void give_to(Answer& answer) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<Token>& tokens() const { return tokens_; }

 private:
  void show(const std::string& text, bool last, const TextSink& sink);

  const Engine& engine_;
  Sampler sampler_;
  std::int32_t limit_;
  bool one_line_;
  std::vector<Token> tokens_;
  std::size_t kept_ = 0;
  /// Text of what is held back, token by token; the last piece ends at a line end where the answer does.
  std::vector<std::string> pieces_;
  std::string partial_;  // bytes of a character that is not whole yet
  std::string text_;     // shown
  bool done_ = false;
  bool finished_ = false;
};

}  // namespace modeld
