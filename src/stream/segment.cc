#include "stream/segment.h"

#include <array>

namespace modeld {
namespace {

struct KindRow {
  SegmentKind kind;
  std::string_view name;
  /// Classes by default: for a segment that is declared stable, and for one that is not.
  CacheClass stable;
  CacheClass unstable;
};

constexpr CacheClass kTask = CacheClass::task_pinned;
constexpr CacheClass kMap = CacheClass::repo_map;
constexpr CacheClass kVolatile = CacheClass::volatile_;

constexpr std::array kKinds = {
    KindRow{SegmentKind::system, "system", kTask, kTask},
    KindRow{SegmentKind::tools, "tools", kTask, kTask},
    KindRow{SegmentKind::repo_rules, "repo_rules", kTask, kTask},
    KindRow{SegmentKind::repo_map, "repo_map", kMap, kMap},
    KindRow{SegmentKind::pinned, "pinned", kMap, kMap},
    KindRow{SegmentKind::diff, "diff", kVolatile, kVolatile},
    KindRow{SegmentKind::terminal, "terminal", kVolatile, kVolatile},
    KindRow{SegmentKind::user, "user", kVolatile, kVolatile},
    KindRow{SegmentKind::assistant, "assistant", kVolatile, kVolatile},
    KindRow{SegmentKind::tool, "tool", kVolatile, kVolatile},
    KindRow{SegmentKind::other, "other", kTask, kVolatile},
};
static_assert(kKinds.size() == static_cast<std::size_t>(SegmentKind::other) + 1);

constexpr std::array<std::string_view, 3> kClassNames = {"task_pinned", "repo_map", "volatile"};

const KindRow& row_of(SegmentKind kind) { return kKinds.at(static_cast<std::size_t>(kind)); }

}  // namespace

std::string_view to_text(SegmentKind kind) { return row_of(kind).name; }

std::string_view to_text(CacheClass cls) { return kClassNames.at(static_cast<std::size_t>(cls)); }

std::optional<SegmentKind> segment_kind_from(std::string_view name) {
  for (const KindRow& row : kKinds) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

CacheClass default_class(SegmentKind kind, bool stable) { return stable ? row_of(kind).stable : row_of(kind).unstable; }

}  // namespace modeld
