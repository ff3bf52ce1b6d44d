// Segments: runs of the token stream with one origin and one cache class.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "stream/tokens.h"

namespace modeld {

/// Where a run of the stream came from.
enum class SegmentKind : std::uint8_t {
  system,
  tools,
  repo_rules,
  repo_map,
  pinned,
  diff,
  terminal,
  user,
  assistant,
  tool,
  /// Anything else a client declares; its class follows from `stable`.
  other,
};

/// How precious a segment's KV is. Order matters: a lower value is never evicted while a higher one is resident.
enum class CacheClass : std::uint8_t { task_pinned, repo_map, volatile_ };

std::string_view to_text(SegmentKind kind);
std::string_view to_text(CacheClass cls);
std::optional<SegmentKind> segment_kind_from(std::string_view name);

/// The class of a segment where the client says nothing: system, tools and repo_rules are task_pinned; repo_map and
/// pinned are repo_map; diff, terminal, user, assistant and tool are volatile; other is task_pinned if `stable`,
/// volatile if not.
CacheClass default_class(SegmentKind kind, bool stable);

struct Segment {
  SegmentKind kind = SegmentKind::user;
  CacheClass cls = CacheClass::volatile_;
  StreamRange tokens;
  /// Bytes of the text it came from, [begin, end) in its source; both 0 where there is none (template tokens).
  std::uint64_t byte_begin = 0;
  std::uint64_t byte_end = 0;
  /// File name or client label; empty for template text.
  std::string source;
  /// Hash of the segment's tokens.
  Digest128 hash;
};

}  // namespace modeld
