#include "session/frame.h"

#include <array>

namespace modeld {
namespace {

// Stands for text and question while the template is rendered; templates pass a user's words through unchanged.
constexpr std::string_view kMarker = "@@modeld-text-goes-here@@";

Result<PromptFrame> plain_frame(const Engine& engine) {
  PromptFrame frame;
  MODELD_TRY(frame.head, engine.tokenize("", /*add_bos=*/true, /*parse_special=*/false));
  frame.before_question = "\n\nQuestion: ";
  MODELD_TRY(frame.after_question, engine.tokenize("\nAnswer:", false, false));
  return frame;
}

}  // namespace

Result<PromptFrame> make_frame(const Engine& engine) {
  if (!engine.geometry().has_chat_template) return plain_frame(engine);
  const std::array messages = {ChatMessage{"user", std::string(kMarker)}};
  MODELD_TRY(const std::string rendered, engine.render_chat(messages, /*add_generation_prompt=*/true));
  const std::size_t at = rendered.find(kMarker);
  if (at == std::string::npos) return plain_frame(engine);
  PromptFrame frame;
  frame.chat = true;
  // Measured: without a word between them, a model may miss a fact that ends the text (docs/design.md).
  frame.before_question = "\n\nQuestion: ";
  const std::string before = rendered.substr(0, at);
  // A template that writes BOS itself must not get a second one from the tokenizer.
  MODELD_TRY(const std::vector<Token> bos, engine.tokenize("", true, false));
  const std::string bos_text = bos.empty() ? "" : engine.piece(bos.front(), /*special=*/true);
  const bool has_bos = !bos_text.empty() && before.starts_with(bos_text);
  MODELD_TRY(frame.head, engine.tokenize(before, /*add_bos=*/!has_bos, /*parse_special=*/true));
  MODELD_TRY(frame.after_question, engine.tokenize(rendered.substr(at + kMarker.size()), false, true));
  return frame;
}

}  // namespace modeld
