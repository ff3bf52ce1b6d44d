// Blocks: 64 to 128 consecutive tokens, cut by content; the unit of eviction, retrieval and storage.
//
// Cuts depend on the text near them only, so that they find themselves again after an edit. Guaranteed: a segment is
// cut independently on both sides of an anchor, a position with the strictly highest priority within max + min tokens;
// what lies beyond the anchors around an edit keeps its blocks. Measured: replacing, inserting or deleting 1 to 8
// tokens changes 1.2 blocks on average, at most 2 in 94 of 100 edits and never more than 5 in 400 edits, in prose (King
// James Bible) and in source code (Python's library); 1.4 blocks, and up to 7, in text without any pause
// (see block.cc for the rule and block_test.cc for the properties). With pages of more than one token this holds for
// edits of whole pages: blocks begin at multiples of the page.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stream/segment.h"
#include "stream/tokens.h"

namespace modeld {

/// How good a place to cut the spot *after* a token is.
enum class Boundary : std::uint8_t { none, word, clause, sentence, line, blank_line };

/// The boundary after each token, from the tokens' text. `pieces[i]` is the text of token i (may hold partial UTF-8).
///  blank_line  the white space that the token ends with completes an empty line
///  line        it ends a line, unless that line (60 bytes or more) was only wrapped inside a sentence: then `word`
///  sentence    a full stop, ! or ? with its closing quotes, before white space and no lower-case letter; 。！？ alone
///  clause      a comma, semicolon or colon before white space
///  word        white space follows, or the token ends with it
std::vector<Boundary> boundaries(std::span<const std::string_view> pieces);

struct BlockLimits {
  std::int32_t min_tokens = 64;
  std::int32_t max_tokens = 128;
  /// The engine's page: every block but a segment's last is a whole number of pages. Divides min and max.
  std::int32_t page_tokens = 1;
};

/// Cuts [0, boundary.size()) into consecutive ranges that cover it. Each is between min and max tokens, and all but the
/// last are whole pages; fewer than min tokens in all are one block. Pure; n log n in the number of tokens. REQUIRES 0
/// < min ≤ max/2 and limits.page divides both. `tokens` gives the content that breaks ties between equal boundaries;
/// same length as `boundary`.
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
