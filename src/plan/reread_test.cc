#include "plan/reread.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace modeld {
namespace {

using Scores = std::vector<double>;
using Blocks = std::vector<std::size_t>;

std::optional<std::size_t> decide(const Scores& fused, const Scores& written, const Blocks& read,
                                  const Blocks& given_up = {}, double margin = 1.5) {
  return block_to_go_back_for({fused, written, read, given_up}, margin);
}

TEST(Reread, GoesBackForABlockThatWinsByBothScores) {
  EXPECT_EQ(decide({0.1, 0.3, 0.2}, {1.0, 2.0, 0.5}, {0}), std::size_t{1});
}

TEST(Reread, StaysWhereTheBestIsBeingReadOrDoesNotWinByTheMargin) {
  EXPECT_EQ(decide({0.3, 0.1}, {1.0, 9.0}, {0}), std::nullopt);
  EXPECT_EQ(decide({0.1, 0.3}, {1.0, 1.4}, {0}), std::nullopt);
  EXPECT_EQ(decide({0.1, 0.3}, {1.0, 1.5}, {0}), std::size_t{1});
}

TEST(Reread, WithNothingReadAnyBlockThatDrawsIsWorthAReturn) {
  EXPECT_EQ(decide({0.0, 0.3}, {0.0, 0.01}, {}), std::size_t{1});
  EXPECT_EQ(decide({0.0, 0.3}, {0.0, 0.0}, {}), std::nullopt);
  EXPECT_EQ(decide({}, {}, {}), std::nullopt);
}

TEST(Reread, WhatIsNotANumberIsNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(decide({nan, 0.3}, {nan, 1.0}, {0}), std::size_t{1});
  EXPECT_EQ(decide({0.1, nan}, {1.0, nan}, {0}), std::nullopt);
}

RC_GTEST_PROP(Reread, ReturnsEndWhateverTheScoresAre, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  Blocks read;
  Blocks given_up;
  std::size_t returns = 0;
  while (true) {
    const auto score = rc::gen::map(rc::gen::inRange(-5, 100), [](int x) { return x / 10.0; });
    const Scores fused = *rc::gen::container<Scores>(count, score);
    const Scores written = *rc::gen::container<Scores>(count, score);
    const auto wanted = decide(fused, written, read, given_up);
    if (!wanted) {
      if (*rc::gen::inRange(0, 3) == 0) break;
      continue;
    }
    RC_ASSERT(std::find(read.begin(), read.end(), *wanted) == read.end());
    RC_ASSERT(std::find(given_up.begin(), given_up.end(), *wanted) == given_up.end());
    given_up.insert(given_up.end(), read.begin(), read.end());
    read = {*wanted};
    RC_ASSERT(++returns <= count);
  }
}

}  // namespace
}  // namespace modeld
