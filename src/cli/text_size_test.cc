#include "cli/text_size.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace modeld {
namespace {

ModelGeometry geometry_of(std::int32_t key_dim) {
  ModelGeometry geometry;
  geometry.weight_bytes = 100'000'000;
  geometry.layers.resize(2);
  for (LayerGeometry& layer : geometry.layers) layer.key_dim = key_dim;
  return geometry;
}

// Whatever passes the limit fits, and one step beyond does not: announcing and reading agree.
RC_GTEST_PROP(TextSize, LimitAndCheckAgree, ()) {
  const ModelGeometry geometry = geometry_of(*rc::gen::element(32, 64, 128, 256));
  Budget budget;
  budget.cold_bytes = *rc::gen::inRange(std::int64_t{1} << 16, std::int64_t{1} << 40);
  const std::uint64_t limit = text_bytes_limit(geometry, budget);
  const auto fits = [&](std::uint64_t bytes) {
    return check_text_fits(estimate_text(bytes, geometry, budget, 1), budget).has_value();
  };
  RC_ASSERT(fits(limit - limit / 1000));
  RC_ASSERT(!fits(limit + limit / 1000 + 1024));
}

TEST(TextSize, RefusalHoldsTheNumbersAndTheWayOut) {
  Budget budget;
  budget.cold_bytes = std::int64_t{1} << 30;
  const TextEstimate estimate = estimate_text(std::uint64_t{1} << 30, geometry_of(64), budget, 2);
  const Status status = check_text_fits(estimate, budget);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::text_too_large);
  EXPECT_NE(status.error().message.find("--host-budget"), std::string::npos);
  ASSERT_EQ(status.error().numbers.size(), 4U);
  EXPECT_EQ(status.error().numbers[0], ErrorNumber("text_bytes", std::int64_t{1} << 30));
  EXPECT_EQ(status.error().numbers[3], ErrorNumber("host_budget_bytes", std::int64_t{1} << 30));
}

TEST(TextSize, MissingFilesAreAnError) {
  const Result<std::uint64_t> bytes = text_bytes({"/no/such/file"}, nullptr);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::file_missing);
}

TEST(TextSize, StandardInputHasNoSizeYet) { EXPECT_EQ(text_bytes({"-"}, nullptr).value_or(1), 0U); }

}  // namespace
}  // namespace modeld
