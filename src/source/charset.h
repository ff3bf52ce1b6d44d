// The two libraries that know legacy encodings, behind values: iconv (glibc) and uchardet.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace modeld {

/// The encoding's name as uchardet gives it; empty if it cannot tell.
std::string detect_charset(std::string_view bytes);

struct ConversionFailure {
  /// false: iconv does not know the encoding.
  bool known = true;
  /// The first byte that is invalid in it, or belongs to a character that is cut off.
  std::size_t offset = 0;
};

/// To UTF-8; the whole of it or nothing.
tl::expected<std::string, ConversionFailure> to_utf8(std::string_view bytes, const std::string& charset);

}  // namespace modeld
