// Real text for evaluation and demo: a file, or all text files of a directory, cut to a number of tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace modeld {

/// The first `bytes` of a file, or of a directory's source and text files in the order of their paths, each with its
/// name in a comment line before it. Files that are not UTF-8 text are passed over in a directory; a single such file
/// is refused. Errors: file_missing, text_empty, text_binary.
Result<std::string> read_corpus(const std::filesystem::path& path, std::size_t bytes);

/// A text's tokens, and the byte at which each begins (one more entry: the text's size).
struct TokenOffsets {
  std::vector<Token> tokens;
  std::vector<std::size_t> bytes;
};
/// The token that holds a byte; past the end the last one.
std::int64_t token_at(const TokenOffsets& offsets, std::size_t byte);
/// Errors: the tokenizer's.
Result<TokenOffsets> token_offsets(const Engine& engine, std::string_view text);

/// The longest prefix of whole lines that takes at most `tokens` tokens. Errors: bad_argument if the text is shorter.
Result<std::string> cut_to_tokens(const Engine& engine, std::string_view text, std::int64_t tokens);

}  // namespace modeld
