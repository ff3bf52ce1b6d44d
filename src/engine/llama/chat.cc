#include "engine/llama/chat.h"

#include <build-info.h>
#include <chat.h>
#include <fmt/format.h>
#include <llama.h>
#include <log.h>

#include <exception>

namespace modeld {

struct ChatTemplate::Parts {
  common_chat_templates_ptr templates;
  bool adds_bos = false;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ChatTemplate::~ChatTemplate() = default;

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(const llama_model* model) {
  // llama-common writes to stderr by itself; what matters of it comes back as an exception.
  common_log_pause(common_log_main());
  try {
    auto parts = std::make_unique<Parts>();
    parts->templates = common_chat_templates_init(model, "");
    parts->adds_bos = llama_vocab_get_add_bos(llama_model_get_vocab(model));
    return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(parts)));
  } catch (const std::exception& e) {
    return fail(ErrorCode::unsupported_operation,
                fmt::format("The model's chat template cannot be read ({}). Use the model without chat.", e.what()));
  }
}

Result<std::string> ChatTemplate::render(std::span<const ChatMessage> messages, bool add_generation_prompt) const {
  try {
    common_chat_templates_inputs inputs;
    for (const ChatMessage& message : messages) {
      common_chat_msg out;
      out.role = message.role;
      out.content = message.content;
      inputs.messages.push_back(std::move(out));
    }
    inputs.add_generation_prompt = add_generation_prompt;
    inputs.use_jinja = true;
    inputs.add_bos = parts_->adds_bos;
    return common_chat_templates_apply(parts_->templates.get(), inputs).prompt;
  } catch (const std::exception& e) {
    return fail(
        ErrorCode::bad_argument,
        fmt::format("The model's chat template refuses these messages ({}). Check their roles and order.", e.what()));
  }
}

std::string llama_build_commit() { return llama_commit(); }

}  // namespace modeld
