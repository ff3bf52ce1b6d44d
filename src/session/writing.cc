#include "session/writing.h"

#include <algorithm>

#include "base/check.h"

namespace modeld {

Token Writing::next(std::span<const float> logits) {
  MODELD_CHECK(!done_);
  const Token token = sampler_.sample(logits);
  if (engine_.is_end(token)) {
    done_ = finished_ = true;
    return token;
  }
  std::string piece = engine_.piece(token);
  const std::size_t line_end = one_line_ ? piece.find('\n') : std::string::npos;
  // Line ends before the first word are no end.
  if (line_end != std::string::npos && all_text().find_first_not_of(" \n\t") != std::string::npos) {
    pieces_.push_back(piece.substr(0, line_end));
    done_ = finished_ = true;
    return token;
  }
  tokens_.push_back(token);
  pieces_.push_back(std::move(piece));
  done_ = static_cast<std::int32_t>(tokens_.size()) >= limit_;
  return token;
}

void Writing::keep(const TextSink& sink) {
  std::string text;
  for (const std::string& piece : pieces_) text += piece;
  pieces_.clear();
  kept_ = tokens_.size();
  show(text, done_, sink);
}

void Writing::take_back() {
  tokens_.resize(kept_);
  pieces_.clear();
  done_ = finished_ = false;
}

std::string Writing::all_text() const {
  std::string text = text_ + partial_;
  for (const std::string& piece : pieces_) text += piece;
  return text;
}

void Writing::show(const std::string& text, bool last, const TextSink& sink) {
  partial_ += text;
  const std::size_t whole = last ? partial_.size() : whole_utf8(partial_);
  std::string_view shown = std::string_view(partial_).substr(0, whole);
  if (text_.empty()) shown.remove_prefix(std::min(shown.find_first_not_of(" \n\t"), shown.size()));
  text_ += shown;
  if (sink && !shown.empty()) sink(shown);
  partial_.erase(0, whole);
}

void Writing::give_to(Answer& answer) const {
  answer.text = text_;
  answer.tokens = tokens_;
  answer.finished = finished_;
  if (!tokens_.empty()) answer.decode_ms_per_token = answer.seconds.decode * 1e3 / static_cast<double>(tokens_.size());
}

}  // namespace modeld
