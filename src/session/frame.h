// The frame around text and question: what the model's chat template writes before, between and after them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace modeld {

struct PromptFrame {
  /// Before the text: BOS and the template's opening of the user's message.
  std::vector<Token> head;
  /// Between the text and the question.
  std::string before_question;
  /// After the question, up to where the answer begins.
  std::vector<Token> after_question;
  /// False for a model without a chat template: the question is then asked as a line and answered on a line.
  bool chat = false;
};

/// Renders the model's own template around a marker and cuts it there. Control tokens are parsed in template text only.
Result<PromptFrame> make_frame(const Engine& engine);

}  // namespace modeld
