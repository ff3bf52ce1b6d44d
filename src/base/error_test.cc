#include "base/error.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace modeld {
namespace {

constexpr ErrorCode kLast = ErrorCode::internal;

template <typename F>
void for_each_code(F&& f) {
  for (int i = 0; i <= static_cast<int>(kLast); ++i) f(static_cast<ErrorCode>(i));
}

TEST(ErrorTable, NamesAreUniqueSnakeCaseWords) {
  std::set<std::string_view> names;
  for_each_code([&](ErrorCode code) {
    const std::string_view name = code_name(code);
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  });
}

TEST(ErrorTable, MeaningsAreUniqueClausesWithoutAStop) {
  std::set<std::string_view> meanings;
  for_each_code([&](ErrorCode code) {
    const std::string_view meaning = code_meaning(code);
    ASSERT_FALSE(meaning.empty());
    EXPECT_NE(meaning.back(), '.') << meaning;
    EXPECT_TRUE(meanings.insert(meaning).second) << meaning;
  });
}

TEST(ErrorTable, ExitStatusesAreNeverZeroAndFollowTheGroups) {
  for_each_code([](ErrorCode code) {
    const int status = exit_status(code);
    EXPECT_TRUE(status == 1 || status == 2 || status == 3 || status == 4 || status == 130) << code_name(code);
  });
  EXPECT_EQ(exit_status(ErrorCode::bad_argument), 2);
  EXPECT_EQ(exit_status(ErrorCode::context_overflow), 2);
  EXPECT_EQ(exit_status(ErrorCode::model_not_gguf), 3);
  EXPECT_EQ(exit_status(ErrorCode::unsupported_operation), 3);
  EXPECT_EQ(exit_status(ErrorCode::hot_too_small), 4);
  EXPECT_EQ(exit_status(ErrorCode::io_failed), 4);
  EXPECT_EQ(exit_status(ErrorCode::engine_failed), 1);
  EXPECT_EQ(exit_status(ErrorCode::internal), 1);
  EXPECT_EQ(exit_status(ErrorCode::cancelled), 130);
}

TEST(Error, TextHoldsCodeSentenceAndNumbers) {
  const Error error{ErrorCode::hot_too_small, "Too small.", {{"needed_tokens", 900}, {"hot_tokens", 512}}};
  EXPECT_EQ(to_text(error), "hot_too_small: Too small. (needed_tokens=900, hot_tokens=512)");
  EXPECT_EQ(to_text(Error{ErrorCode::cancelled, "Cancelled.", {}}), "cancelled: Cancelled.");
}

Result<std::unique_ptr<int>> give(bool good) {
  if (!good) return fail(ErrorCode::io_failed, "No.", {{"a_bytes", 1}});
  return std::make_unique<int>(7);
}
Status pass(bool good) {
  if (!good) return fail(ErrorCode::disk_full, "Full.");
  return {};
}
Result<int> both(bool first, bool second, int& steps) {
  MODELD_TRY(const std::unique_ptr<int> value, give(first));
  ++steps;
  MODELD_TRY_VOID(pass(second));
  ++steps;
  return *value;
}

TEST(Error, TryPassesValuesOnAndStopsAtTheFirstError) {
  int steps = 0;
  EXPECT_EQ(both(true, true, steps).value(), 7);
  EXPECT_EQ(steps, 2);
  steps = 0;
  const auto first = both(false, true, steps);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::io_failed);
  EXPECT_EQ(first.error().numbers, (std::vector<ErrorNumber>{{"a_bytes", 1}}));
  EXPECT_EQ(steps, 0);
  EXPECT_EQ(both(true, false, steps).error().code, ErrorCode::disk_full);
  EXPECT_EQ(steps, 1);
}

}  // namespace
}  // namespace modeld
