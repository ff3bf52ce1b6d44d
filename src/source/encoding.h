// Bytes of unknown encoding become UTF-8 text, or an error that says why not.
//
// In this order: byte order marks; valid UTF-8 (and so ASCII); UTF-16 and UTF-32 without a mark, which show by their
// NUL bytes; text that was UTF-8 and is broken (refused with the place, never taken for something else); last a legacy
// encoding as uchardet names it, converted by iconv. Binary is what has NUL bytes and is no UTF-16 or UTF-32, a PDF,
// and what is neither UTF-8 nor free of control characters. UTF-16 without a mark and without a single ASCII character
// is not recognised. Line ends: "\r\n" becomes "\n", so that all line counts stay; a lone "\r" stays. Thread: free of
// shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace modeld {

struct DecodedText {
  /// Valid UTF-8 without byte order mark or NUL, with a visible character.
  std::string text;
  /// What it came from: "UTF-8", "UTF-16LE", "WINDOWS-1252" …
  std::string encoding;
};

/// `name` is for the messages. Errors: text_empty (nothing, or only white space), text_binary, text_encoding (with
/// byte_offset: the first byte that could not be understood).
Result<DecodedText> decode_text(std::string bytes, std::string_view name);

/// Whether a file that starts with these bytes is surely binary. The head may end inside a character.
bool looks_binary(std::string_view head);

/// Offset of the first byte that does not belong to valid UTF-8 (no overlong forms, no surrogates); none if all does.
std::optional<std::size_t> first_invalid_utf8(std::string_view bytes);

}  // namespace modeld
