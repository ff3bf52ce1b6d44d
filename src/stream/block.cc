// How blocks are cut.
//
// The problem: blocks are addressed by their content, so after an edit the cuts behind it must fall at the same tokens
// as before, although all positions have moved; every block must have between min and max tokens; and a cut should fall
// where the text pauses, because a fact that is cut through the middle loses its meaning when a half is read alone.
//
// The rule: every position has a priority: first how well the text pauses there, then a hash of the few tokens before
// it. Positions are taken in the order of priority (at equal priority: from the left), and a position becomes a cut
//   - if no cut stands within min tokens of it (the segment's ends count as cuts), and
//   - if the gap between the cuts around it is still longer than max, and
//   - if it does not leave a gap of between max and max + min beside it whose few possible cuts all lie inside
//   sentences.
// A second pass does without the last condition. (It takes the cuts inside sentences from 10 % to 4 % in the King James
// Bible, and from 3 % to less than 1 % in source code.) When all positions have been taken, every gap is between min
// and max: a gap longer than max ≥ 2·min always holds a position that is min tokens from both its ends.
//
// Why cuts find themselves again: a priority depends on the text around its position only, and whether a position
// becomes a cut depends on positions of *higher* priority within max + min tokens, these on still higher ones, and so
// on. Such chains of rising priority are short (their chance falls like 1/k! with their length k), and nothing crosses
// an anchor: a position whose priority is the strict maximum within max + min tokens on either side. When its turn
// comes, the cuts around it have higher priority, so they are more than max + min tokens away: none of the three
// conditions can refuse it. Nor does the anchor's one side see the other before: for the same reason, a cut of higher
// priority on its left meets none of the conditions with one on its right. So a segment is cut like its part before an
// anchor and its part behind it, each cut alone; what lies beyond the anchors that an edit leaves standing is cut as
// before.
//
// Equal priorities mean equal tokens before the cut, as in a repeated filler: there the cuts follow one another from
// the left, and when an edit moves their phase the blocks still have the same content.
#include "stream/block.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace modeld {
namespace {

/// Tokens before a position that its hash covers: enough to tell line ends apart, few so that an edit moves few
/// priorities.
constexpr std::size_t kHashedTokens = 6;

/// A line at least this long that stops inside a sentence was wrapped, it did not end.
constexpr std::size_t kWrappedLineBytes = 60;

constexpr bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == '\v'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
// Any byte of a multi-byte character counts as a letter: almost all of them are.
constexpr bool is_letter(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

/// The end of the text read so far, as far as it decides about pauses.
class Tail {
 public:
  void add(std::string_view piece) {
    for (const char c : piece) {
      if (!is_space(c)) {
        if (line_ends_ > 0) line_bytes_ = 0;
        line_ends_ = 0;
        spaces_ = false;
        text_.push_back(c);
        ++line_bytes_;
        continue;
      }
      spaces_ = true;
      if (c == '\n') ++line_ends_;
      if (line_ends_ == 0) ++line_bytes_;
    }
    if (text_.size() > 2 * kKept) text_.erase(0, text_.size() - kKept);
  }
  /// Line ends in the white space that the text ends with.
  [[nodiscard]] std::size_t line_ends() const { return line_ends_; }
  [[nodiscard]] bool ends_in_space() const { return spaces_; }
  /// Whether the last character before that white space ends a sentence, closing quotes and brackets aside.
  [[nodiscard]] bool sentence_ended() const {
    std::string_view s = text_;
    while (!s.empty()) {
      if (s.ends_with('"') || s.ends_with('\'') || s.ends_with(')') || s.ends_with(']')) {
        s.remove_suffix(1);
      } else if (s.ends_with("”") || s.ends_with("’") || s.ends_with("»")) {
        s.remove_suffix(s.ends_with("»") ? 2 : 3);
      } else {
        break;
      }
    }
    return s.ends_with('.') || s.ends_with('!') || s.ends_with('?') || full_width_stop(s);
  }
  /// Full stops of scripts that put no space behind them.
  [[nodiscard]] bool ends_in_full_width_stop() const { return !spaces_ && full_width_stop(text_); }
  /// Whether a clause has ended inside a sentence.
  [[nodiscard]] bool clause_ended() const {
    return !text_.empty() && (text_.back() == ',' || text_.back() == ';' || text_.back() == ':');
  }
  /// Whether the line that has just ended goes on in the next one, whose first character is `next`.
  [[nodiscard]] bool wrapped(char next) const {
    if (line_bytes_ < kWrappedLineBytes || text_.empty() || sentence_ended()) return false;
    return (is_letter(text_.back()) || clause_ended()) && is_letter(next);
  }

 private:
  static bool full_width_stop(std::string_view s) {
    return s.ends_with("。") || s.ends_with("！") || s.ends_with("？");
  }
  static constexpr std::size_t kKept = 64;
  std::string text_;  // without white space
  std::size_t line_bytes_ = 0;
  std::size_t line_ends_ = 0;
  bool spaces_ = false;
};

bool holds_line_end(std::string_view piece) {
  const auto last = std::find_if_not(piece.rbegin(), piece.rend(), is_space);
  return std::find(piece.rbegin(), last, '\n') != last;
}

Boundary boundary_after(const Tail& tail, std::string_view piece, std::string_view next) {
  const auto* first = std::find_if_not(next.begin(), next.end(), is_space);
  const char next_char = first == next.end() ? '\n' : *first;
  if (holds_line_end(piece)) {
    if (tail.line_ends() > 1) return Boundary::blank_line;
    return tail.wrapped(next_char) ? Boundary::word : Boundary::line;
  }
  if (tail.ends_in_full_width_stop()) return Boundary::sentence;
  const bool pause = next.empty() || is_space(next.front()) || tail.ends_in_space();
  if (!pause) return Boundary::none;
  if (tail.sentence_ended() && !is_lower(next_char)) return Boundary::sentence;  // not "e.g. so", "No. three"
  return tail.clause_ended() ? Boundary::clause : Boundary::word;
}

std::uint64_t mixed(std::uint64_t x) {  // the finaliser of SplitMix64
  x ^= x >> 30U;
  x *= 0xbf58476d1ce4e5b9U;
  x ^= x >> 27U;
  x *= 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

struct Candidate {
  std::uint64_t priority = 0;
  std::size_t position = 0;
};

std::uint64_t priority_of(std::span<const Token> tokens, std::span<const Boundary> boundary, std::size_t position) {
  std::uint64_t hash = 0;
  for (std::size_t i = position - std::min(position, kHashedTokens); i < position; ++i) {
    hash = mixed(hash + 0x9e3779b97f4a7c15U + static_cast<std::uint32_t>(tokens[i]));
  }
  return (static_cast<std::uint64_t>(boundary[position - 1]) << 61U) | (hash >> 3U);
}

/// The cuts of one segment, while they are being chosen.
class Cuts {
 public:
  Cuts(std::span<const Boundary> boundary, std::size_t min, std::size_t max)
      : boundary_(boundary), min_(min), max_(max), cut_(boundary.size() + 1, false), closed_(cut_.size(), false) {
    cut_.front() = true;
    add(boundary.size());
    add(0);
  }
  /// Makes a cut of the position if it is still open and, with `careful`, if it leaves no gap beside it that could only
  /// be cut in the middle of a sentence.
  void take(std::size_t position, bool careful) {
    if (closed_[position]) return;
    if (careful && !(cuts_well(before(position), position) && cuts_well(position, after(position)))) return;
    add(position);
  }
  [[nodiscard]] std::vector<StreamRange> ranges() const {
    std::vector<StreamRange> ranges;
    std::size_t begin = 0;
    for (std::size_t i = 1; i < cut_.size(); ++i) {
      if (!cut_[i]) continue;
      ranges.push_back({StreamPos(static_cast<std::int64_t>(begin)), StreamPos(static_cast<std::int64_t>(i))});
      begin = i;
    }
    return ranges;
  }

 private:
  void close(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) closed_[i] = true;
  }
  /// The cut before (after) a position, or the position max + min tokens away if that is nearer.
  [[nodiscard]] std::size_t before(std::size_t p) const {
    std::size_t d = 1;
    while (d < std::min(p, max_ + min_) && !cut_[p - d]) ++d;
    return p - d;
  }
  [[nodiscard]] std::size_t after(std::size_t p) const {
    std::size_t d = 1;
    while (d < std::min(cut_.size() - 1 - p, max_ + min_) && !cut_[p + d]) ++d;
    return p + d;
  }
  /// Longer gaps leave so much choice that they are taken to cut well.
  [[nodiscard]] bool cuts_well(std::size_t begin, std::size_t end) const {
    if (end - begin <= max_ || end - begin >= max_ + min_) return true;
    for (std::size_t p = begin + min_; p + min_ <= end; ++p) {
      if (boundary_[p - 1] >= Boundary::sentence) return true;
    }
    return false;
  }
  void add(std::size_t p) {
    cut_[p] = true;
    const std::size_t last = cut_.size() - 1;
    close(p - std::min(p, min_ - 1), std::min(last + 1, p + min_));
    if (p > 0 && p - before(p) <= max_) close(before(p), p);
    if (p < last && after(p) - p <= max_) close(p, after(p));
  }

  std::span<const Boundary> boundary_;
  std::size_t min_;
  std::size_t max_;
  std::vector<bool> cut_;
  /// Positions that cannot become a cut any more: too near to one, or in a gap that is short enough.
  std::vector<bool> closed_;
};

}  // namespace

std::vector<Boundary> boundaries(std::span<const std::string_view> pieces) {
  std::vector<Boundary> result(pieces.size(), Boundary::none);
  Tail tail;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    tail.add(pieces[i]);
    const std::string_view next = i + 1 < pieces.size() ? pieces[i + 1] : std::string_view();
    result[i] = boundary_after(tail, pieces[i], next);
  }
  return result;
}

std::vector<StreamRange> cut_blocks(std::span<const Token> tokens, std::span<const Boundary> boundary,
                                    const BlockLimits& limits) {
  MODELD_CHECK(tokens.size() == boundary.size());
  MODELD_CHECK(limits.page_tokens > 0 && limits.min_tokens > 0 && limits.min_tokens <= limits.max_tokens / 2);
  MODELD_CHECK(limits.min_tokens % limits.page_tokens == 0 && limits.max_tokens % limits.page_tokens == 0);
  const std::size_t size = tokens.size();
  if (size == 0) return {};
  const auto min = static_cast<std::size_t>(limits.min_tokens);
  const auto max = static_cast<std::size_t>(limits.max_tokens);
  const auto page = static_cast<std::size_t>(limits.page_tokens);
  std::vector<Candidate> candidates;
  candidates.reserve(size / page);
  for (std::size_t p = min; p + min <= size; p += page) candidates.push_back({priority_of(tokens, boundary, p), p});
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.position < b.position;
  });
  Cuts cuts(boundary, min, max);
  for (const Candidate& candidate : candidates) cuts.take(candidate.position, true);
  for (const Candidate& candidate : candidates) cuts.take(candidate.position, false);
  return cuts.ranges();
}

std::vector<Block> cut_stream(std::span<const Token> tokens, std::span<const Boundary> boundary,
                              std::span<const Segment> segments, const BlockLimits& limits) {
  MODELD_CHECK(tokens.size() == boundary.size());
  std::vector<Block> blocks;
  StreamPos end;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const StreamRange range = segments[s].tokens;
    MODELD_CHECK(end <= range.begin && range.begin <= range.end);
    MODELD_CHECK(static_cast<std::uint64_t>(range.end.get()) <= tokens.size());
    end = range.end;
    const auto begin = static_cast<std::size_t>(range.begin.get());
    const auto size = static_cast<std::size_t>(range.size());
    for (const StreamRange& cut : cut_blocks(tokens.subspan(begin, size), boundary.subspan(begin, size), limits)) {
      const std::int64_t shift = range.begin.get();
      blocks.push_back({{cut.begin + shift, cut.end + shift}, static_cast<std::uint32_t>(s), segments[s].cls});
    }
  }
  return blocks;
}

}  // namespace modeld
