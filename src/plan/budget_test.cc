#include "plan/budget.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

namespace modeld {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;
constexpr std::int64_t kGib = std::int64_t{1} << 30;

ModelGeometry geometry(std::size_t layers, std::int32_t kv_heads, std::int32_t dim, std::int32_t window,
                       std::int64_t weights) {
  ModelGeometry result;
  result.layers.assign(layers, LayerGeometry{kv_heads * 3, kv_heads, dim, dim, 0, {}});
  result.trained_window = window;
  result.weight_bytes = static_cast<std::uint64_t>(weights);
  return result;
}

/// SmolLM2-135M on a host of 8 GiB, 4 of them free.
BudgetRequest host_request() {
  BudgetRequest request;
  request.geometry = geometry(30, 3, 64, 8192, 100 * kMib);
  request.host = {"host memory", false, 8 * kGib, 4 * kGib};
  request.device = request.host;
  request.compute_bytes = 100 * kMib;
  return request;
}

BudgetRequest gpu_request() {
  BudgetRequest request = host_request();
  request.device = {"GPU 0", true, 2 * kGib, kGib};
  return request;
}

BudgetRequest any_request() {
  BudgetRequest request;
  request.geometry =
      geometry(*rc::gen::inRange<std::size_t>(1, 40), *rc::gen::inRange(1, 9), *rc::gen::element(64, 80, 128),
               *rc::gen::element(512, 8192, 131072), *rc::gen::inRange<std::int64_t>(0, kGib));
  request.kv_type = *rc::gen::element(KvType::f16, KvType::q8_0, KvType::q4_0);
  request.host = {"host memory", false, *rc::gen::inRange<std::int64_t>(0, 64 * kGib), 0};
  request.host.free_bytes = *rc::gen::inRange<std::int64_t>(0, request.host.total_bytes + 1);
  request.device = request.host;
  if (*rc::gen::arbitrary<bool>()) {
    request.device = {"GPU 0", true, *rc::gen::inRange<std::int64_t>(0, 32 * kGib), 0};
    request.device.free_bytes = *rc::gen::inRange<std::int64_t>(0, request.device.total_bytes + 1);
  }
  request.compute_bytes = *rc::gen::inRange<std::int64_t>(0, kGib);
  if (*rc::gen::arbitrary<bool>()) request.hot_tokens = *rc::gen::inRange(0, 20000);
  if (*rc::gen::arbitrary<bool>()) request.cold_bytes = *rc::gen::inRange<std::int64_t>(0, 32 * kGib);
  return request;
}

double fixed_bytes(const BudgetRequest& request) {
  return static_cast<double>(request.geometry.weight_bytes) + static_cast<double>(request.compute_bytes);
}
double hot_bytes(const Budget& budget) {
  return static_cast<double>(budget.hot_tokens) * static_cast<double>(budget.kv_bytes_per_token);
}

RC_GTEST_PROP(Budget, NeverExceedsAnyShare, ()) {
  const BudgetRequest request = any_request();
  const auto budget = derive_budget(request);
  RC_PRE(budget.has_value());
  const auto free = static_cast<double>(request.device.free_bytes);
  const double used = fixed_bytes(request) + hot_bytes(*budget);
  RC_ASSERT(used <= free * 0.80);
  RC_ASSERT(free - used >= free * 0.10);
  const auto host_free = static_cast<double>(request.host.free_bytes);
  const auto cold = static_cast<double>(budget->cold_bytes);
  if (request.device.accelerator) {
    RC_ASSERT(free - used >= static_cast<double>(request.device.total_bytes) * 0.10 - 1.0);
    RC_ASSERT(cold <= host_free * 0.90 + 1.0);
  } else {
    // One memory for both: they fit it together, with the headroom left.
    RC_ASSERT(used + cold <= host_free * 0.90 + 1.0);
  }
  if (request.cold_bytes) {
    RC_ASSERT(budget->cold_bytes == *request.cold_bytes);
  } else {
    RC_ASSERT(cold <= static_cast<double>(request.host.total_bytes) * 0.25);
  }
}

RC_GTEST_PROP(Budget, HotTokensAreWhatIsAskedForOrAllThatIsUseful, ()) {
  const BudgetRequest request = any_request();
  const auto budget = derive_budget(request);
  RC_PRE(budget.has_value());
  RC_ASSERT(budget->hot_tokens >= 256);
  RC_ASSERT(budget->hot_tokens <= request.geometry.trained_window);
  RC_ASSERT(budget->hot_tokens <= budget->device_tokens);
  RC_ASSERT(budget->exact_tokens == budget->hot_tokens);
  if (request.hot_tokens) {
    RC_ASSERT(budget->hot_tokens == *request.hot_tokens);
  } else {
    RC_ASSERT(budget->hot_tokens == std::min(request.geometry.trained_window, budget->device_tokens));
  }
  // As many tokens as fit the room for KV, and not one more.
  RC_ASSERT(budget->device_tokens * budget->kv_bytes_per_token <= budget->device_kv_bytes);
  RC_ASSERT((budget->device_tokens + 1) * budget->kv_bytes_per_token > budget->device_kv_bytes);
}

RC_GTEST_PROP(Budget, MoreFreeMemoryNeverGivesLess, ()) {
  BudgetRequest request = any_request();
  request.cold_bytes.reset();
  const auto smaller = derive_budget(request);
  RC_PRE(smaller.has_value());
  const std::int64_t more = *rc::gen::inRange<std::int64_t>(0, 4 * kGib);
  request.device.free_bytes += more;
  if (!request.device.accelerator) request.host = request.device;
  const auto larger = derive_budget(request);
  RC_ASSERT(larger.has_value());
  RC_ASSERT(larger->hot_tokens >= smaller->hot_tokens);
  RC_ASSERT(larger->device_kv_bytes >= smaller->device_kv_bytes);
  // The cold tier takes what whole hot tokens leave, so it may lose less than one token's bytes to them.
  RC_ASSERT(larger->cold_bytes > smaller->cold_bytes - larger->kv_bytes_per_token - 2);
}

RC_GTEST_PROP(Budget, IsAFunctionOfItsArguments, ()) {
  const BudgetRequest request = any_request();
  const auto before = derive_budget(request);
  const auto after = derive_budget(request);
  RC_ASSERT(before.has_value() == after.has_value());
  if (before) {
    RC_ASSERT(before->hot_tokens == after->hot_tokens && before->cold_bytes == after->cold_bytes);
    RC_ASSERT(before->device_kv_bytes == after->device_kv_bytes);
  } else {
    RC_ASSERT(to_text(before.error()) == to_text(after.error()));
  }
}

RC_GTEST_PROP(Budget, EveryRefusalHasASentenceAndNumbers, ()) {
  const BudgetRequest request = any_request();
  const auto budget = derive_budget(request);
  RC_PRE(!budget.has_value());
  const Error& error = budget.error();
  RC_ASSERT(error.code == ErrorCode::device_budget_exceeded || error.code == ErrorCode::hot_too_large ||
            error.code == ErrorCode::hot_too_small || error.code == ErrorCode::unsupported_kv_type ||
            error.code == ErrorCode::host_budget_exceeded);
  RC_ASSERT(error.message.ends_with("."));
  RC_ASSERT(!error.numbers.empty());
}

// ── examples ────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Budget, OfSmolLm2OnAHostIsItsTrainedWindow) {
  const Budget budget = derive_budget(host_request()).value();
  EXPECT_EQ(budget.kv_bytes_per_token, 23040);
  EXPECT_EQ(budget.device_usable_bytes, 4 * kGib * 8 / 10);
  EXPECT_EQ(budget.device_kv_bytes, budget.device_usable_bytes - 200 * kMib);
  EXPECT_EQ(budget.hot_tokens, 8192);
  EXPECT_EQ(budget.cold_bytes, 2 * kGib);
}

TEST(Budget, OnTheHostColdTierAndHotSetShareTheFreeMemory) {
  BudgetRequest request = host_request();
  request.host.free_bytes = request.device.free_bytes = kGib;
  const Budget budget = derive_budget(request).value();
  const std::int64_t hot = budget.hot_tokens * budget.kv_bytes_per_token;
  EXPECT_EQ(budget.cold_bytes, kGib * 9 / 10 - 200 * kMib - hot);
  EXPECT_LT(budget.cold_bytes, 2 * kGib);
  // A smaller hot set leaves more for it.
  request.hot_tokens = 1024;
  EXPECT_EQ(derive_budget(request).value().cold_bytes, kGib * 9 / 10 - 200 * kMib - 1024 * 23040);
}

TEST(Budget, AnAcceleratorKeepsATenthOfItsTotal) {
  BudgetRequest request = gpu_request();
  EXPECT_EQ(derive_budget(request).value().device_usable_bytes, kGib * 8 / 10);
  request.device.total_bytes = 4 * kGib;  // 0.4 of the 1 GiB that is free are the reserve now
  EXPECT_EQ(derive_budget(request).value().device_usable_bytes, kGib - 4 * kGib / 10);
  EXPECT_EQ(derive_budget(request).value().cold_bytes, 2 * kGib);
}

TEST(Budget, ASmallDeviceIsRefusedWithWhatFitsAtEachKvType) {
  BudgetRequest request = gpu_request();
  request.device = {"GPU 0", true, 512 * kMib, 260 * kMib};  // 208 usable, 8 left for KV: 364 tokens at f16
  const Budget fits = derive_budget(request).value();
  EXPECT_EQ(fits.hot_tokens, 364);
  const auto refused = derive_budget(request, {}, 512);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::device_budget_exceeded);
  const std::string& text = refused.error().message;
  EXPECT_NE(text.find("f16: 364 tokens, q8_0: 685 tokens, q4_0: 1294 tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("GPU 0"), std::string::npos) << text;
  request.kv_type = KvType::q8_0;
  EXPECT_EQ(derive_budget(request, {}, 512).value().hot_tokens, 685);
}

TEST(Budget, WeightsThatDoNotFitAreRefusedWithWhatIsMissing) {
  BudgetRequest request = gpu_request();
  request.geometry.weight_bytes = kGib;
  const auto refused = derive_budget(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::device_budget_exceeded);
  EXPECT_EQ(refused.error().numbers.back(), ErrorNumber("missing_bytes", kGib + 100 * kMib - kGib * 8 / 10));
}

TEST(Budget, AHotSetBeyondTheWindowOrTheMemoryIsTooLarge) {
  BudgetRequest request = host_request();
  request.hot_tokens = 8193;
  EXPECT_EQ(derive_budget(request).error().code, ErrorCode::hot_too_large);
  request.hot_tokens = 8192;
  EXPECT_EQ(derive_budget(request).value().hot_tokens, 8192);
  request.device.free_bytes = request.host.free_bytes = 300 * kMib;  // 40 MiB for KV: 1820 tokens at f16
  const auto refused = derive_budget(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::hot_too_large);
  EXPECT_NE(refused.error().message.find("f16: 1820 tokens"), std::string::npos) << refused.error().message;
}

TEST(Budget, AHotSetThatHoldsNothingIsTooSmall) {
  BudgetRequest request = host_request();
  request.hot_tokens = 255;
  EXPECT_EQ(derive_budget(request).error().code, ErrorCode::hot_too_small);
  request.hot_tokens = 256;
  EXPECT_EQ(derive_budget(request).value().hot_tokens, 256);
  request.hot_tokens.reset();
  request.geometry.trained_window = 128;
  EXPECT_EQ(derive_budget(request).error().code, ErrorCode::hot_too_small);
}

TEST(Budget, AKvTypeThatTheHeadsDoNotAllowIsRefusedWithThoseThatTheyDo) {
  BudgetRequest request = host_request();
  request.geometry = geometry(30, 3, 80, 8192, 100 * kMib);
  request.kv_type = KvType::q8_0;
  const auto refused = derive_budget(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported_kv_type);
  EXPECT_NE(refused.error().message.find("f16: "), std::string::npos);
  EXPECT_EQ(refused.error().message.find("q4_0: "), std::string::npos);
}

TEST(Budget, AColdTierBeyondTheFreeMemoryIsRefusedAndOneWithinItGranted) {
  BudgetRequest request = host_request();
  request.cold_bytes = 4 * kGib;
  const auto refused = derive_budget(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::host_budget_exceeded);
  request.cold_bytes = refused.error().numbers.back().second;  // what it says can be had
  EXPECT_EQ(derive_budget(request).value().cold_bytes, *request.cold_bytes);
  *request.cold_bytes += 1;
  EXPECT_EQ(derive_budget(request).error().code, ErrorCode::host_budget_exceeded);
}

TEST(Budget, SenselessSharesAndSizesAreRefused) {
  EXPECT_EQ(derive_budget(host_request(), {.resident = 1.5}).error().code, ErrorCode::bad_argument);
  BudgetRequest request = host_request();
  request.compute_bytes = -1;
  EXPECT_EQ(derive_budget(request).error().code, ErrorCode::bad_argument);
}

}  // namespace
}  // namespace modeld
