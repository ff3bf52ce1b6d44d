#include "stream/segment.h"

#include <gtest/gtest.h>

#include <set>

namespace modeld {
namespace {

using enum SegmentKind;

TEST(Segment, DefaultClassesAreThoseOfTheDesign) {
  for (const bool stable : {false, true}) {
    for (const SegmentKind kind : {system, tools, repo_rules}) {
      EXPECT_EQ(default_class(kind, stable), CacheClass::task_pinned) << to_text(kind);
    }
    for (const SegmentKind kind : {repo_map, pinned}) {
      EXPECT_EQ(default_class(kind, stable), CacheClass::repo_map) << to_text(kind);
    }
    for (const SegmentKind kind : {diff, terminal, user, assistant, tool}) {
      EXPECT_EQ(default_class(kind, stable), CacheClass::volatile_) << to_text(kind);
    }
  }
  EXPECT_EQ(default_class(other, true), CacheClass::task_pinned);
  EXPECT_EQ(default_class(other, false), CacheClass::volatile_);
}

TEST(Segment, KindNamesGoBothWaysAndAreUnique) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(other); ++i) {
    const auto kind = static_cast<SegmentKind>(i);
    EXPECT_TRUE(names.insert(to_text(kind)).second);
    EXPECT_EQ(segment_kind_from(to_text(kind)), kind);
  }
  EXPECT_FALSE(segment_kind_from("volatile"));
  EXPECT_FALSE(segment_kind_from(""));
}

TEST(Segment, ClassNamesAreThoseOfTheDesignAndTheOrderIsByValue) {
  EXPECT_EQ(to_text(CacheClass::task_pinned), "task_pinned");
  EXPECT_EQ(to_text(CacheClass::repo_map), "repo_map");
  EXPECT_EQ(to_text(CacheClass::volatile_), "volatile");
  EXPECT_LT(CacheClass::task_pinned, CacheClass::repo_map);
  EXPECT_LT(CacheClass::repo_map, CacheClass::volatile_);
}

}  // namespace
}  // namespace modeld
