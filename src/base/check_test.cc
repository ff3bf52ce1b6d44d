#include "base/check.h"

#include <gtest/gtest.h>

namespace modeld {
namespace {

TEST(Check, AFalseConditionAbortsAndSaysWhere) {
  const int tokens = 3;
  EXPECT_DEATH(MODELD_CHECK(tokens == 4), "broken invariant: tokens == 4 at .*check_test.cc:");
}

TEST(Check, ATrueConditionIsEvaluatedOnceAndPasses) {
  int evaluated = 0;
  MODELD_CHECK(++evaluated > 0);
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace modeld
