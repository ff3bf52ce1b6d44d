// The model's side of the engine: text to tokens and back.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <span>

#include "engine/llama/llama_engine.h"

namespace modeld {

LlamaEngine::LlamaEngine(ModelPtr model, ModelFacts facts, Identity identity, std::unique_ptr<ChatTemplate> chat)
    : model_(std::move(model)),
      vocab_(llama_model_get_vocab(model_.get())),
      facts_(std::move(facts)),
      identity_(std::move(identity)),
      chat_(std::move(chat)) {}

LlamaEngine::~LlamaEngine() = default;

Identity LlamaEngine::identity() const {
  Identity identity = identity_;
  identity.kv_type = open_ != nullptr ? std::string(to_text(open_->spec.kv_type)) : "";
  return identity;
}

Result<std::vector<Token>> LlamaEngine::tokenize(std::string_view text, bool add_bos, bool parse_special) const {
  static_assert(std::is_same_v<Token, llama_token>);
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    return fail(ErrorCode::text_too_large, "A text of over 2 GB cannot be tokenised in one piece.",
                {{"text_bytes", static_cast<std::int64_t>(text.size())}});
  std::vector<Token> tokens;
  // llama.cpp's own flag would add an end token as well where the model has that habit; the stream goes on here.
  if (add_bos && identity_.adds_bos) tokens.push_back(llama_vocab_bos(vocab_));
  if (text.empty()) return tokens;
  const auto bytes = static_cast<std::int32_t>(text.size());
  const auto head = static_cast<std::int32_t>(tokens.size());
  try {
    const auto tokenize_into = [&, raw = std::span(text)](std::int32_t room) {
      tokens.resize(static_cast<std::size_t>(head) + static_cast<std::size_t>(room));
      return llama_tokenize(vocab_, raw.data(), bytes, tokens.data() + head, room, false, parse_special);
    };
    // No tokenizer makes more tokens than bytes, save for a leading space of its own.
    std::int32_t count = tokenize_into(bytes + 8);
    if (count < 0 && count != std::numeric_limits<std::int32_t>::min()) count = tokenize_into(-count);
    if (count < 0) return fail(ErrorCode::engine_failed, "llama.cpp could not tokenise the text.");
    tokens.resize(static_cast<std::size_t>(head) + static_cast<std::size_t>(count));
    return tokens;
  } catch (const std::exception& e) {
    return fail(ErrorCode::text_encoding, fmt::format("The text cannot be tokenised ({}). Is it UTF-8?", e.what()));
  }
}

std::string LlamaEngine::piece(Token token, bool special) const {
  if (token < 0 || token >= facts_.geometry.vocabulary) return {};
  std::array<char, 256> buffer{};
  const auto room = static_cast<std::int32_t>(buffer.size());
  const std::int32_t length = llama_token_to_piece(vocab_, token, buffer.data(), room, 0, special);
  if (length >= 0) return {buffer.data(), static_cast<std::size_t>(length)};
  std::string text(static_cast<std::size_t>(-length), '\0');
  const std::int32_t again = llama_token_to_piece(vocab_, token, text.data(), -length, 0, special);
  text.resize(static_cast<std::size_t>(std::max(again, 0)));
  return text;
}

bool LlamaEngine::is_end(Token token) const {
  return token >= 0 && token < facts_.geometry.vocabulary && llama_vocab_is_eog(vocab_, token);
}

Result<std::string> LlamaEngine::render_chat(std::span<const ChatMessage> messages, bool add_generation_prompt) const {
  if (chat_ != nullptr) return chat_->render(messages, add_generation_prompt);
  return fail(ErrorCode::unsupported_operation,
              fmt::format("{} has no usable chat template. Give it plain text to continue.", facts_.geometry.name));
}

}  // namespace modeld
