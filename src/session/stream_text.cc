#include "session/stream_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace modeld {
namespace {

// Long texts are tokenised in pieces, for progress, cancel and memory. Pieces end at a line end that a non-space
// follows: pre-tokenisers never join tokens across such a place.
constexpr std::size_t kPieceBytes = std::size_t{64} << 10U;

std::size_t piece_end(std::string_view text, std::size_t begin) {
  if (text.size() - begin <= kPieceBytes) return text.size();
  for (std::size_t at = begin + kPieceBytes; at > begin + kPieceBytes / 2; --at) {
    if (text[at - 1] == '\n' && text[at] != '\n' && text[at] != ' ' && text[at] != '\t') return at;
  }
  std::size_t at = begin + kPieceBytes;
  while (at > begin + 1 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
  return at;
}

bool is_blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; });
}

}  // namespace

StreamText::StreamText(const PromptFrame& frame) : tokens_(frame.head), boundaries_(frame.head.size(), Boundary::none) {
  if (tokens_.empty()) return;
  Segment head;
  head.kind = SegmentKind::system;
  head.cls = default_class(SegmentKind::system, true);
  head.tokens = {StreamPos(0), end()};
  head.hash = hash_tokens(tokens_);
  segments_.push_back(std::move(head));
}

Result<StreamText::Part> StreamText::tokenise(const Engine& engine, const TextPart& part, bool named,
                                              const CancelFlag* cancel, std::vector<Token>& out) {
  Part result;
  result.name = part.name;
  const std::string header = named ? fmt::format("\n\nFile {}:\n", part.name) : std::string();
  result.header_bytes = static_cast<std::uint32_t>(header.size());
  result.text = header + part.text;
  const std::string_view text = result.text;
  if (text.size() > UINT32_MAX) {
    return fail(ErrorCode::text_too_large, fmt::format("{} is larger than 4 GiB.", part.name),
                {{"text_bytes", static_cast<std::int64_t>(text.size())}});
  }
  for (std::size_t begin = 0; begin < text.size();) {
    if (cancel != nullptr && cancel->requested()) return fail(ErrorCode::cancelled, "Cancelled while tokenising.");
    const std::size_t end = piece_end(text, begin);
    MODELD_TRY(const std::vector<Token> tokens, engine.tokenize(text.substr(begin, end - begin), false, false));
    std::size_t offset = begin;
    for (const Token token : tokens) {
      out.push_back(token);
      result.offsets.push_back(static_cast<std::uint32_t>(std::min(offset, end)));
      offset += engine.piece(token).size();
    }
    begin = end;
  }
  result.offsets.push_back(static_cast<std::uint32_t>(text.size()));
  find_lines(result);
  return result;
}

void StreamText::find_lines(Part& part) {
  for (std::size_t at = part.header_bytes; at < part.text.size(); ++at) {
    if (at == part.header_bytes || part.text[at - 1] == '\n')
      part.line_starts.push_back(static_cast<std::uint32_t>(at));
  }
}

Status StreamText::append(const Engine& engine, std::span<const TextPart> parts, const CancelFlag* cancel) {
  return append_parts(engine, parts, parts_.size() + parts.size() > 1, cancel);
}

Status StreamText::append_parts(const Engine& engine, std::span<const TextPart> parts, bool named,
                                const CancelFlag* cancel) {
  std::vector<Token> tokens;
  std::vector<Part> added;
  std::vector<Boundary> boundary;
  std::vector<Segment> segments;
  for (const TextPart& part : parts) {
    if (is_blank(part.text)) {
      return fail(ErrorCode::text_empty, fmt::format("{} holds no text.", part.name.empty() ? "The input" : part.name));
    }
    const std::size_t first = tokens.size();
    MODELD_TRY(Part done, tokenise(engine, part, named, cancel, tokens));
    done.tokens = {end() + static_cast<std::int64_t>(first), end() + static_cast<std::int64_t>(tokens.size())};
    std::vector<std::string_view> pieces;
    for (std::size_t i = 0; i + 1 < done.offsets.size(); ++i) {
      pieces.push_back(std::string_view(done.text).substr(done.offsets[i], done.offsets[i + 1] - done.offsets[i]));
    }
    const std::vector<Boundary> ends = boundaries(pieces);
    boundary.insert(boundary.end(), ends.begin(), ends.end());
    Segment segment;
    segment.kind = part.kind;
    segment.cls = default_class(part.kind, false);
    segment.tokens = done.tokens;
    segment.byte_end = part.text.size();
    segment.source = part.name;
    segment.hash = hash_tokens(std::span(tokens).subspan(first));
    segments.push_back(std::move(segment));
    added.push_back(std::move(done));
  }
  if (tokens.empty()) return fail(ErrorCode::text_empty, "There is no text to ask about.");
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  boundaries_.insert(boundaries_.end(), boundary.begin(), boundary.end());
  std::move(segments.begin(), segments.end(), std::back_inserter(segments_));
  std::move(added.begin(), added.end(), std::back_inserter(parts_));
  MODELD_CHECK(boundaries_.size() == tokens_.size());
  return {};
}

Status StreamText::append_stored(PartRow row) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(row.range.size(), 0));
  const bool sound = row.range.begin == end() && count > 0 && row.tokens.size() == count &&
                     row.boundaries.size() == count && row.offsets.size() == count + 1 &&
                     std::is_sorted(row.offsets.begin(), row.offsets.end()) && row.offsets.back() <= row.text.size() &&
                     row.header_bytes <= row.text.size();
  if (!sound)
    return fail(ErrorCode::state_damaged,
                fmt::format("The stored text \"{}\" does not fit those before it.", row.name));
  Segment segment;
  segment.kind = row.kind;
  segment.cls = row.cls;
  segment.tokens = row.range;
  segment.byte_end = row.text.size() - row.header_bytes;
  segment.source = row.name;
  segment.hash = hash_tokens(row.tokens);
  segments_.push_back(std::move(segment));
  tokens_.insert(tokens_.end(), row.tokens.begin(), row.tokens.end());
  boundaries_.insert(boundaries_.end(), row.boundaries.begin(), row.boundaries.end());
  Part part;
  part.tokens = row.range;
  part.name = std::move(row.name);
  part.text = std::move(row.text);
  part.offsets = std::move(row.offsets);
  part.header_bytes = row.header_bytes;
  find_lines(part);
  parts_.push_back(std::move(part));
  return {};
}

const Segment& StreamText::segment_of(const Part& part) const {
  const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                    [&](const Segment& s) { return s.tokens.begin == part.tokens.begin; });
  MODELD_CHECK(segment != segments_.end());
  return *segment;
}

PartRow StreamText::row(const Part& part) const {
  const Segment& segment = segment_of(part);
  const auto begin = static_cast<std::ptrdiff_t>(part.tokens.begin.get());
  const auto end = static_cast<std::ptrdiff_t>(part.tokens.end.get());
  PartRow row;
  row.name = part.name;
  row.kind = segment.kind;
  row.cls = segment.cls;
  row.range = part.tokens;
  row.header_bytes = part.header_bytes;
  row.text = part.text;
  row.tokens.assign(tokens_.begin() + begin, tokens_.begin() + end);
  row.offsets = part.offsets;
  row.boundaries.assign(boundaries_.begin() + begin, boundaries_.begin() + end);
  return row;
}

std::vector<PartRow> StreamText::rows(std::size_t first) const {
  std::vector<PartRow> rows;
  for (std::size_t p = first; p < parts_.size(); ++p) rows.push_back(row(parts_[p]));
  return rows;
}

std::vector<TextPart> StreamText::parts() const {
  std::vector<TextPart> parts;
  parts.reserve(parts_.size());
  for (const Part& part : parts_)
    parts.push_back({part.name, part.text.substr(part.header_bytes), segment_of(part).kind});
  return parts;
}

Result<StreamText> StreamText::replaced(const Engine& engine, const PromptFrame& frame, std::span<const TextPart> parts,
                                        const CancelFlag* cancel) const {
  StreamText fresh(frame);
  for (const TextPart& part : parts) {
    const auto same_name = [&](const Part& here) { return here.name == part.name; };
    const auto same = std::find_if(parts_.begin(), parts_.end(), [&](const Part& here) {
      return same_name(here) && std::string_view(here.text).substr(here.header_bytes) == part.text;
    });
    if (same != parts_.end()) {
      PartRow known = row(*same);
      known.range = {fresh.end(), fresh.end() + known.range.size()};
      known.kind = part.kind;
      known.cls = default_class(part.kind, false);
      MODELD_TRY_VOID(fresh.append_stored(std::move(known)));
      continue;
    }
    // A part keeps the line before it that it was begun with, or without: the beginning of the stream stays as it is.
    const auto before = std::find_if(parts_.begin(), parts_.end(), same_name);
    const bool named = before != parts_.end() ? before->header_bytes > 0 : parts.size() > 1;
    MODELD_TRY_VOID(fresh.append_parts(engine, std::span(&part, 1), named, cancel));
  }
  if (fresh.parts_.empty()) return fail(ErrorCode::text_empty, "There is no text to ask about.");
  return fresh;
}

std::vector<Block> StreamText::cut(StreamPos from, const BlockLimits& limits) const {
  std::vector<Block> blocks;
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const StreamPos begin = std::max(from, segments_[s].tokens.begin);
    if (begin >= segments_[s].tokens.end) continue;
    const auto first = static_cast<std::size_t>(begin.get());
    const auto count = static_cast<std::size_t>(segments_[s].tokens.end - begin);
    for (const StreamRange range :
         cut_blocks(std::span(tokens_).subspan(first, count), std::span(boundaries_).subspan(first, count), limits)) {
      blocks.push_back(
          Block{{begin + range.begin.get(), begin + range.end.get()}, static_cast<std::uint32_t>(s), segments_[s].cls});
    }
  }
  return blocks;
}

const StreamText::Part* StreamText::part_at(StreamPos pos) const {
  const auto it = std::upper_bound(parts_.begin(), parts_.end(), pos,
                                   [](StreamPos p, const Part& part) { return p < part.tokens.end; });
  return it != parts_.end() && it->tokens.contains(pos) ? &*it : nullptr;
}

std::string StreamText::text(StreamRange range) const {
  std::string out;
  auto it = std::upper_bound(parts_.begin(), parts_.end(), range.begin,
                             [](StreamPos p, const Part& part) { return p < part.tokens.end; });
  for (; it != parts_.end() && it->tokens.begin < range.end; ++it) {
    const Part& part = *it;
    const auto begin = static_cast<std::size_t>(std::max(range.begin, part.tokens.begin) - part.tokens.begin);
    const auto end = static_cast<std::size_t>(std::min(range.end, part.tokens.end) - part.tokens.begin);
    out += part.text.substr(part.offsets[begin], part.offsets[end] - part.offsets[begin]);
  }
  return out;
}

std::vector<StreamRange> StreamText::sentences(StreamRange range) const {
  constexpr std::int64_t kShortest = 8;
  std::vector<StreamRange> sentences;
  StreamPos begin = range.begin;
  for (StreamPos pos = range.begin; pos < range.end; ++pos) {
    const StreamPos end = pos + 1;
    const bool ends =
        boundaries_[static_cast<std::size_t>(pos.get())] >= Boundary::sentence && end - begin >= kShortest;
    if (!ends && end < range.end) continue;
    if (end - begin < kShortest && !sentences.empty()) {
      sentences.back().end = end;
    } else {
      sentences.push_back({begin, end});
    }
    begin = end;
  }
  return sentences;
}

StreamText::Where StreamText::where(StreamRange range) const {
  for (StreamPos pos = range.begin; pos < range.end; ++pos) {
    const Part* part = part_at(pos);
    if (part == nullptr) continue;
    const auto line_of = [&](std::uint32_t byte) {
      const auto it = std::upper_bound(part->line_starts.begin(), part->line_starts.end(), byte);
      return std::max<std::int64_t>(1, it - part->line_starts.begin());
    };
    const auto begin = static_cast<std::size_t>(pos - part->tokens.begin);
    const auto end = static_cast<std::size_t>(std::min(range.end, part->tokens.end) - part->tokens.begin);
    const std::uint32_t last = std::max(part->offsets[begin], part->offsets[end] - 1);
    return {part->name, line_of(part->offsets[begin]), line_of(last)};
  }
  return {};
}

std::int64_t StreamText::bytes() const {
  std::size_t bytes = tokens_.size() * sizeof(Token) + boundaries_.size() * sizeof(Boundary);
  for (const Part& part : parts_) {
    bytes += part.text.size() + (part.offsets.size() + part.line_starts.size()) * sizeof(std::uint32_t);
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace modeld
