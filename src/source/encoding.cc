#include "source/encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "source/charset.h"

namespace modeld {
namespace {

using namespace std::string_view_literals;

unsigned at(std::string_view bytes, std::size_t i) { return static_cast<unsigned char>(bytes[i]); }

/// Length of the valid UTF-8 character at `i`, 0 if there is none. Table 3-7 of the Unicode standard.
std::size_t character_length(std::string_view s, std::size_t i) {
  const unsigned lead = at(s, i);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || i + length > s.size()) return 0;
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (at(s, i + 1) < low || at(s, i + 1) > high) return 0;
  for (std::size_t k = 2; k < length; ++k) {
    if ((at(s, i + k) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

struct Utf8Census {
  std::size_t multibyte = 0;
  std::size_t invalid = 0;
};

Utf8Census utf8_census(std::string_view s) {
  Utf8Census census;
  for (std::size_t i = 0; i < s.size();) {
    const std::size_t length = character_length(s, i);
    if (length > 1) ++census.multibyte;
    if (length == 0) ++census.invalid;
    i += std::max<std::size_t>(length, 1);
  }
  return census;
}

/// Control characters that text does not have: all but tab, line and page ends, backspace and escape (terminal logs).
bool is_control(unsigned c) {
  return (c < 0x20 && c != '\t' && c != '\n' && c != '\v' && c != '\f' && c != '\r' && c != '\b' && c != 0x1B) ||
         c == 0x7F;
}

/// Compressed and machine code has a control character every ten bytes or so; text of any 8-bit encoding has next to
/// none.
bool full_of_controls(std::string_view s) {
  const auto controls = std::ranges::count_if(s, [](char c) { return is_control(static_cast<unsigned char>(c)); });
  return static_cast<std::size_t>(controls) * 50 > s.size();
}

std::uint32_t unit(std::string_view s, std::size_t i, std::size_t width, bool little) {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < width; ++k) value = value << 8U | at(s, little ? i + width - 1 - k : i + k);
  return value;
}

/// Letters of an alphabet or syllabary, and full-width forms. Pairs of 8-bit characters read as UTF-16 are seldom any
/// of these: they look like ideographs.
bool is_alphabetic(std::uint32_t c) {
  return c < 0x2000 || (c >= 0x3000 && c < 0x3100) || (c >= 0xAC00 && c < 0xD7A4) || (c >= 0xFF00 && c < 0xFFF0);
}

/// How many ASCII characters `s` has read as UTF-16 or UTF-32; none if it cannot be such a text. A surrogate pair that
/// the end cuts is let pass, as `s` may be the head of a file.
std::optional<std::size_t> wide_score(std::string_view s, std::size_t width, bool little) {
  std::size_t ascii = 0;
  std::size_t alphabetic = 0;
  bool punctuated = false;
  bool after_high = false;
  for (std::size_t i = 0; i + width <= s.size(); i += width) {
    const std::uint32_t c = unit(s, i, width, little);
    const bool high = c >= 0xD800 && c < 0xDC00;
    const bool low = c >= 0xDC00 && c < 0xE000;
    if (width == 4 && (c > 0x10FFFF || high || low)) return std::nullopt;
    if (width == 2 && low != after_high) return std::nullopt;
    after_high = high;
    const bool in_private_use = c >= 0xE000 && c < 0xF900;
    if (is_control(c) || in_private_use || (c & 0xFFFEU) == 0xFFFE) return std::nullopt;
    if (c < 0x80) ++ascii;
    if (is_alphabetic(c)) ++alphabetic;
    // Ideographic comma and full stop, full-width comma.
    punctuated = punctuated || c == 0x3001 || c == 0x3002 || c == 0xFF0C;
  }
  // Ideographs without their punctuation are 8-bit text that has a NUL somewhere.
  if (width == 2 && !punctuated && alphabetic * 2 < s.size() / width) return std::nullopt;
  return ascii;
}

struct Wide {
  const char* charset;
  std::size_t width;
  bool little;
  std::string_view mark;
};
// UTF-32 first: the mark of UTF-16LE is the beginning of its.
constexpr std::array kWide = {Wide{"UTF-32LE", 4, true, "\xFF\xFE\0\0"sv}, Wide{"UTF-32BE", 4, false, "\0\0\xFE\xFF"sv},
                              Wide{"UTF-16LE", 2, true, "\xFF\xFE"sv}, Wide{"UTF-16BE", 2, false, "\xFE\xFF"sv}};

/// For bytes with NULs and without a mark: the reading with the most ASCII characters.
const Wide* guess_wide(std::string_view s) {
  // UTF-8 beyond ASCII is not valid by chance: this is such a text with a NUL in it.
  if (!first_invalid_utf8(s) && utf8_census(s).multibyte > 0) return nullptr;
  const Wide* best = nullptr;
  std::size_t best_score = 0;
  for (const Wide& wide : kWide) {
    const auto score = wide_score(s, wide.width, wide.little);
    if (score && *score > best_score) {
      best = &wide;
      best_score = *score;
    }
  }
  return best;
}

const Wide* marked_wide(std::string_view s) {
  const auto* it = std::ranges::find_if(kWide, [&](const Wide& w) { return s.starts_with(w.mark); });
  return it != kWide.end() ? it : nullptr;
}

bool is_space(std::uint32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200B) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000 ||
         c == 0xFEFF;
}

/// Of valid UTF-8.
bool only_space(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const std::size_t length = std::max<std::size_t>(character_length(s, i), 1);
    std::uint32_t c = length == 1 ? at(s, i) : at(s, i) & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) c = c << 6U | (at(s, i + k) & 0x3FU);
    if (!is_space(c)) return false;
    i += length;
  }
  return true;
}

void unify_line_ends(std::string& s) {
  std::size_t to = s.find("\r\n");
  if (to == std::string::npos) return;
  for (std::size_t from = to; from < s.size(); ++from) {
    if (s[from] == '\r' && from + 1 < s.size() && s[from + 1] == '\n') continue;
    s[to++] = s[from];
  }
  s.resize(to);
}

tl::unexpected<Error> binary(std::string_view name) {
  return fail(ErrorCode::text_binary,
              fmt::format("{} is not text but binary data. Convert it to text first, or leave it out.", name));
}

tl::unexpected<Error> bad_byte(std::string_view name, std::string_view why, std::size_t offset) {
  return fail(
      ErrorCode::text_encoding,
      fmt::format("{} {} at byte {}. Mend it or convert it to UTF-8 (for example with iconv).", name, why, offset),
      {{"byte_offset", static_cast<std::int64_t>(offset)}});
}

Result<DecodedText> finish(std::string text, std::string encoding, std::string_view name) {
  if (text.find('\0') != std::string::npos) return binary(name);
  if (only_space(text)) {
    return fail(ErrorCode::text_empty, fmt::format("{} holds no text. Name a file that does.", name));
  }
  unify_line_ends(text);
  return DecodedText{std::move(text), std::move(encoding)};
}

Result<DecodedText> decode_wide(std::string_view bytes, std::size_t mark, const Wide& wide, std::string_view name) {
  auto text = to_utf8(bytes.substr(mark), wide.charset);
  if (!text) return bad_byte(name, fmt::format("is {} that is broken", wide.charset), mark + text.error().offset);
  return finish(std::move(*text), wide.charset, name);
}

/// What to try for a name of uchardet's: first the superset that files of that name really use.
std::vector<std::string> candidates(const std::string& charset) {
  if (charset == "ISO-8859-1") return {"WINDOWS-1252", charset};
  if (charset == "ISO-8859-9") return {"WINDOWS-1254", charset};
  if (charset == "ISO-8859-8") return {"WINDOWS-1255", charset};
  if (charset == "TIS-620") return {"WINDOWS-874", charset};
  if (charset == "SHIFT_JIS") return {"CP932", charset};
  if (charset == "EUC-KR") return {"UHC", charset};
  if (charset == "GB2312") return {"GB18030", charset};
  if (charset == "BIG5") return {charset, "CP950", "BIG5-HKSCS"};
  return {charset};
}

Result<DecodedText> decode_legacy(std::string_view bytes, std::size_t first_invalid, std::string_view name) {
  // What is ASCII up to there tells nothing; a megabyte behind it tells enough.
  constexpr std::size_t kBefore = 4096;
  constexpr std::size_t kLook = std::size_t{1} << 20U;
  const std::size_t from = first_invalid > kBefore ? first_invalid - kBefore : 0;
  const std::string charset = detect_charset(bytes.substr(from, kLook));
  if (charset.empty() || charset == "UTF-8" || charset == "ASCII") {
    return bad_byte(name, "is in an encoding that cannot be told, not valid UTF-8 from", first_invalid);
  }
  std::size_t furthest = 0;
  for (const std::string& candidate : candidates(charset)) {
    auto text = to_utf8(bytes, candidate);
    if (text) return finish(std::move(*text), candidate, name);
    furthest = std::max(furthest, text.error().known ? text.error().offset : first_invalid);
  }
  return bad_byte(name, fmt::format("looks like {} but is not valid in it", charset), furthest);
}

/// 7-bit encodings of Japanese, Korean and Chinese: plain ASCII with escape sequences that choose a character set.
bool may_be_iso_2022(std::string_view bytes) {
  return bytes.find("\x1B$") != std::string_view::npos &&
         std::ranges::all_of(bytes, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = character_length(bytes, i);
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

bool looks_binary(std::string_view head) {
  if (marked_wide(head) != nullptr) return false;
  if (head.starts_with("%PDF-")) return true;
  if (head.find('\0') != std::string_view::npos) return guess_wide(head) == nullptr;
  const auto invalid = first_invalid_utf8(head);
  return invalid && *invalid + 4 <= head.size() && full_of_controls(head);
}

Result<DecodedText> decode_text(std::string bytes, std::string_view name) {
  if (bytes.empty()) return fail(ErrorCode::text_empty, fmt::format("{} is empty. Name a file with text.", name));
  if (const Wide* wide = marked_wide(bytes)) {
    return decode_wide(bytes, wide->mark.size(), *wide, name);
  }
  if (bytes.starts_with("%PDF-")) {
    return fail(ErrorCode::text_binary,
                fmt::format("{} is a PDF. Convert it first, for example with pdftotext.", name));
  }
  if (bytes.find('\0') != std::string::npos) {
    const Wide* wide = guess_wide(bytes);
    if (wide == nullptr) return binary(name);
    return decode_wide(bytes, 0, *wide, name);
  }
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  const bool marked = bytes.starts_with(kMark);
  const auto invalid = first_invalid_utf8(bytes);
  if (!invalid) {
    if (may_be_iso_2022(bytes)) {
      const std::string charset = detect_charset(bytes);
      if (charset.starts_with("ISO-2022")) {
        if (auto text = to_utf8(bytes, charset)) return finish(std::move(*text), charset, name);
      }
    }
    if (marked) bytes.erase(0, kMark.size());
    return finish(std::move(bytes), "UTF-8", name);
  }
  if (full_of_controls(bytes)) return binary(name);
  const Utf8Census census = utf8_census(bytes);
  if (marked || (census.multibyte > 0 && census.multibyte >= census.invalid)) {
    return bad_byte(name, "is UTF-8 that is broken", *invalid);
  }
  return decode_legacy(bytes, *invalid, name);
}

}  // namespace modeld
