#include "engine/scripted/lexicon.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace modeld {
namespace {

constexpr std::size_t kLongestWord = 32;
constexpr std::array<std::pair<Token, std::string_view>, 4> kControl = {{
    {Lexicon::kBos, "<|bos|>"},
    {Lexicon::kEndOfText, "<|endoftext|>"},
    {Lexicon::kChatStart, "<|im_start|>"},
    {Lexicon::kChatEnd, "<|im_end|>"},
}};

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '\'';
}

Token byte_token(char c) { return static_cast<Token>(static_cast<unsigned char>(c)); }

}  // namespace

std::uint64_t word_hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return h;
}

Lexicon::Lexicon(std::int32_t size) : size_(size), words_(static_cast<std::size_t>(size)) {
  MODELD_CHECK(size > kFirstWord);
}

std::vector<Token> Lexicon::tokenize(std::string_view text, bool parse_special) {
  const std::lock_guard guard(lock_);
  std::vector<Token> out;
  while (!text.empty()) {
    if (parse_special && text.front() == '<') {
      bool found = false;
      for (const auto& [token, name] : kControl) {
        if (!text.starts_with(name)) continue;
        out.push_back(token);
        text.remove_prefix(name.size());
        found = true;
        break;
      }
      if (found) continue;
    }
    const std::size_t lead = text.front() == ' ' ? 1 : 0;
    std::size_t end = lead;
    while (end < text.size() && end - lead < kLongestWord && in_word(text[end])) ++end;
    if (end - lead == 0 || end == 1) {
      out.push_back(byte_token(text.front()));
      text.remove_prefix(1);
      continue;
    }
    word(text.substr(0, end), out);
    text.remove_prefix(end);
  }
  return out;
}

void Lexicon::word(std::string_view text, std::vector<Token>& out) {
  const auto known = ids_.find(std::string(text));
  if (known != ids_.end()) {
    out.push_back(known->second);
    return;
  }
  const auto slots = static_cast<std::size_t>(size_ - kFirstWord);
  if (ids_.size() == slots) {
    for (const char c : text) out.push_back(byte_token(c));
    return;
  }
  auto slot = static_cast<std::size_t>(word_hash(text) % slots);
  while (!words_[slot + kFirstWord].empty()) slot = (slot + 1) % slots;
  words_[slot + kFirstWord] = text;
  const auto token = static_cast<Token>(slot) + kFirstWord;
  ids_.emplace(text, token);
  out.push_back(token);
}

std::string Lexicon::piece(Token token, bool special) const {
  if (token < 0 || token >= size_) return {};
  if (token < kBos) return std::string(1, static_cast<char>(static_cast<unsigned char>(token)));
  if (token < kFirstWord) {
    return special ? std::string(kControl.at(static_cast<std::size_t>(token - kBos)).second) : std::string();
  }
  const std::lock_guard guard(lock_);
  return words_[static_cast<std::size_t>(token)];
}

}  // namespace modeld
