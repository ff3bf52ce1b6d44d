// Blocks: 64 to 128 consecutive tokens, cut by content; the unit of eviction, retrieval and storage.
//
// Cuts depend on the tokens near them only, so that they find themselves again after an edit: an edit of n tokens changes
// at most two blocks beyond those that n tokens fill (see block.cc for the rule and block_test.cc for the property).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stream/segment.h"
#include "stream/tokens.h"

namespace modeld {

/// How good a place to cut the spot *after* a token is.
enum class Boundary : std::uint8_t { none, word, sentence, line, blank_line };

/// The boundary after each token, from the tokens' text. `pieces[i]` is the text of token i (may hold partial UTF-8).
/// A token that ends "\n" after another line end is a blank line; ". ", "! ", "? " and their closing quotes end a
/// sentence; a following token that starts with a space makes a word end.
std::vector<Boundary> boundaries(std::span<const std::string_view> pieces);

struct BlockLimits {
  std::int32_t min_tokens = 64;
  std::int32_t max_tokens = 128;
  /// The engine's page: every block but a segment's last is a whole number of pages. Divides min and max.
  std::int32_t page_tokens = 1;
};

/// Cuts [0, boundary.size()) into consecutive ranges that cover it. Each is between min and max tokens, except that the
/// last may be shorter than min (a segment's remainder). Pure. REQUIRES 0 < min ≤ max/2 and limits.page divides both.
/// `tokens` gives the content that breaks ties between equal boundaries; same length as `boundary`.
std::vector<StreamRange> cut_blocks(std::span<const Token> tokens, std::span<const Boundary> boundary,
                                    const BlockLimits& limits);

/// A block of the stream, with what the policies need to know of it.
struct Block {
  StreamRange range;
  /// Index into the stream's segments.
  std::uint32_t segment = 0;
  CacheClass cls = CacheClass::volatile_;
};

/// Cuts every segment of a stream; no block crosses a segment's end. Blocks come in stream order.
std::vector<Block> cut_stream(std::span<const Token> tokens, std::span<const Boundary> boundary,
                              std::span<const Segment> segments, const BlockLimits& limits);

}  // namespace modeld
