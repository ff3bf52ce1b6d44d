// The token stream with the text it came from: tokens, segments, and for each token its bytes in a source.
//
// Invariant: tokens, segments and offsets agree; segments cover the stream without gap or overlap. Only append()
// changes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "engine/engine.h"
#include "session/frame.h"
#include "session/session.h"
#include "store/catalog.h"
#include "stream/block.h"
#include "stream/segment.h"

namespace modeld {

class StreamText {
 public:
  /// Starts the stream with the frame's head.
  explicit StreamText(const PromptFrame& frame);

  /// Tokenises the parts and appends them, each as a segment of its own. A part of a text of several gets its name as a
  /// line before it. On an error or cancel nothing is appended. Errors: text_empty, cancelled, the tokenizer's.
  Status append(const Engine& engine, std::span<const TextPart> parts, const CancelFlag* cancel);

  /// Appends a part as rows() gave it, without tokenising it again. Errors: state_damaged for one that does not follow
  /// the stream, or does not agree with itself; nothing is appended then.
  Status append_stored(PartRow row);
  /// The stream that `parts` would make alone; those that are here are not tokenised again.
  Result<StreamText> replaced(const Engine& engine, const PromptFrame& frame, std::span<const TextPart> parts,
                              const CancelFlag* cancel) const;
  /// The parts from number `first` on, as they are stored.
  [[nodiscard]] std::vector<PartRow> rows(std::size_t first) const;
  [[nodiscard]] std::size_t part_count() const { return parts_.size(); }
  [[nodiscard]] std::vector<TextPart> parts() const;

  [[nodiscard]] const std::vector<Token>& tokens() const { return tokens_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] StreamPos end() const { return StreamPos(static_cast<std::int64_t>(tokens_.size())); }
  /// Cuts everything from `from` on into blocks.
  [[nodiscard]] std::vector<Block> cut(StreamPos from, const BlockLimits& limits) const;
  /// The text of a range: parts joined as they stand in the stream; template tokens give nothing.
  [[nodiscard]] std::string text(StreamRange range) const;
  /// A range cut into sentences, or lines where there are none, in order and without gaps; one of less than 8 tokens
  /// (a heading, "Dr.") joins what follows, at the end what precedes.
  [[nodiscard]] std::vector<StreamRange> sentences(StreamRange range) const;

  struct Where {
    std::string source;
    std::int64_t line_begin = 0;
    std::int64_t line_end = 0;
  };
  /// Source and lines of a range (of its first part). Lines count from 1; both 0 for template tokens.
  [[nodiscard]] Where where(StreamRange range) const;
  /// Bytes held, for the host budget.
  [[nodiscard]] std::int64_t bytes() const;

 private:
  struct Part {
    StreamRange tokens;
    std::string name;
    std::string text;
    /// Byte offset of each token in `text`, and one past the last.
    std::vector<std::uint32_t> offsets;
    /// Byte offset where each line of the user's own text begins, and how many header bytes stand before it.
    std::vector<std::uint32_t> line_starts;
    std::uint32_t header_bytes = 0;
  };
  static void find_lines(Part& part);
  Status append_parts(const Engine& engine, std::span<const TextPart> parts, bool named, const CancelFlag* cancel);
  static Result<Part> tokenise(const Engine& engine, const TextPart& part, bool named, const CancelFlag* cancel,
                               std::vector<Token>& out);
  [[nodiscard]] const Segment& segment_of(const Part& part) const;
  [[nodiscard]] PartRow row(const Part& part) const;
  [[nodiscard]] const Part* part_at(StreamPos pos) const;

  std::vector<Token> tokens_;
  std::vector<Boundary> boundaries_;
  std::vector<Segment> segments_;
  std::vector<Part> parts_;
};

}  // namespace modeld
