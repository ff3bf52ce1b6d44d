// The model's own chat template, run by llama.cpp's jinja engine.
//
// Invariant: chat.cc alone sees llama-common's headers; its exceptions end there.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/engine.h"

struct llama_model;

namespace modeld {

class ChatTemplate {
 public:
  /// REQUIRES `model` to outlive the result. Errors: unsupported_operation for a template that cannot be parsed.
  static Result<std::unique_ptr<ChatTemplate>> parse(const llama_model* model);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  /// A beginning-of-stream token that the template writes is left out where the model's tokenizer adds it itself.
  /// Errors: bad_argument for messages that the template refuses.
  [[nodiscard]] Result<std::string> render(std::span<const ChatMessage> messages, bool add_generation_prompt) const;

 private:
  struct Parts;
  explicit ChatTemplate(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// "0c1e57098": the commit that the linked llama.cpp was built from.
std::string llama_build_commit();

}  // namespace modeld
