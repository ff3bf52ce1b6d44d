// The scripted engine's tokenizer: words with their leading space, single bytes, and a few control tokens.
//
// What:      a word is an optional space and up to 32 letters, digits, '_' or '\''; all else is one token a byte, so
// that
//            any bytes round-trip exactly. Words get their id when first met: the slot that their hash names, or the
//            next free one. A full table leaves new words to bytes.
// Thread:    any; one lock inside.
// Invariant: a word's id never changes, and two words never share one.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stream/tokens.h"

namespace modeld {

/// FNV-1a: fixed by definition, unlike std::hash.
std::uint64_t word_hash(std::string_view text);

class Lexicon {
 public:
  /// Bytes are tokens 0 … 255; these follow, then words.
  static constexpr Token kBos = 256;
  static constexpr Token kEndOfText = 257;
  static constexpr Token kChatStart = 258;
  static constexpr Token kChatEnd = 259;
  static constexpr Token kFirstWord = 260;

  /// REQUIRES size > kFirstWord.
  explicit Lexicon(std::int32_t size = 8192);

  [[nodiscard]] std::int32_t size() const { return size_; }
  std::vector<Token> tokenize(std::string_view text, bool parse_special);
  /// "" for ids that no word has, and for control tokens unless `special`.
  std::string piece(Token token, bool special) const;

 private:
  void word(std::string_view text, std::vector<Token>& out);

  std::int32_t size_;
  mutable std::mutex lock_;
  std::unordered_map<std::string, Token> ids_;
  std::vector<std::string> words_;
};

}  // namespace modeld
