#include "session/calibrate.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "engine/scripted/open.h"
#include "session/calibrate_attention.h"

namespace modeld {
namespace {

CalibrationSettings small() {
  CalibrationSettings settings;
  settings.contexts = 2;
  settings.context_tokens = 1024;
  settings.questions_per_context = 6;
  // Two layers of one KV head each: one head's keys are a sixth of all KV.
  settings.index_share = 0.4;
  return settings;
}

// Layer 1 of the scripted model copies what stood behind the same words before: its heads look at the fact, layer 0's
// cannot.
TEST(CalibrateHeads, FindsTheHeadsThatLookAtTheFact) {
  const std::unique_ptr<Engine> engine = open_scripted();
  const Result<Calibration> found = calibrate_heads(*engine, small());
  ASSERT_TRUE(found) << to_text(found.error());
  ASSERT_FALSE(found->heads.empty());
  EXPECT_EQ(found->heads.front().head.layer, 1);
  EXPECT_GT(found->heads.front().mass, 0.3);
  for (const HeadMass& head : found->heads) EXPECT_EQ(head.head.layer, 1) << head.head.head;
  EXPECT_EQ(found->model, engine->identity().model);
  EXPECT_EQ(found->engine, engine->identity().engine);
  EXPECT_FALSE(found->reading_measured);
  EXPECT_EQ(found->reading, ReadingPolicy{});
}

TEST(CalibrateHeads, IsAFunctionOfItsSeed) {
  const std::unique_ptr<Engine> a = open_scripted();
  const std::unique_ptr<Engine> b = open_scripted();
  Result<Calibration> first = calibrate_heads(*a, small());
  Result<Calibration> second = calibrate_heads(*b, small());
  ASSERT_TRUE(first && second);
  first->seconds = second->seconds = 0.0;
  EXPECT_EQ(to_json(*first), to_json(*second));
}

TEST(CalibrateHeads, WorksWithoutAChatTemplateAndForOtherRopes) {
  ScriptedOptions options;
  options.chat_template = false;
  options.adds_bos = true;
  options.rope = RopeStyle::norm;
  const std::unique_ptr<Engine> engine = open_scripted(options);
  const Result<Calibration> found = calibrate_heads(*engine, small());
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(found->heads.front().head.layer, 1);
}

TEST(CalibrateHeads, AModelThatCannotSeeTheFactHasNone) {
  ScriptedOptions options;
  options.windows = {64, 64};
  const std::unique_ptr<Engine> engine = open_scripted(options);
  const Result<Calibration> found = calibrate_heads(*engine, small());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::calibration_failed);
}

TEST(CalibrateHeads, CancelEndsItAndLeavesNoContext) {
  const std::unique_ptr<Engine> engine = open_scripted();
  CancelFlag cancel;
  const ProgressSink stop = [&](const Progress& p) {
    if (p.done > 0) cancel.request();
  };
  const Result<Calibration> found = calibrate_heads(*engine, small(), stop, &cancel);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::cancelled);
  EXPECT_EQ(engine->context().cells, 0);
}

TEST(CalibrateHeads, ProgressGrowsUpToItsTotal) {
  const std::unique_ptr<Engine> engine = open_scripted();
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  ASSERT_TRUE(calibrate_heads(*engine, small(), [&](const Progress& p) {
    EXPECT_GE(p.done, last);
    EXPECT_LE(p.done, p.total);
    last = p.done;
    total = p.total;
  }));
  EXPECT_EQ(last, total);
}

TEST(CalibrationPath, NamesModelAndEngine) {
  Identity identity;
  identity.model = "abc123";
  identity.engine = "llama.cpp 0c1e/57";
  EXPECT_EQ(calibration_path("/c", identity), std::filesystem::path("/c/calibrations/abc123-llama.cpp-0c1e-57.json"));
}

CalibrationSettings small_reading() {
  CalibrationSettings settings = small();
  settings.stream_tokens = 4096;
  settings.stream_questions = 6;
  return settings;
}

TEST(CalibrateReading, KeepsTheBestPolicyAndSavesEachRow) {
  const std::unique_ptr<Engine> engine = open_scripted();
  Result<Calibration> calibration = calibrate_heads(*engine, small());
  ASSERT_TRUE(calibration);
  std::size_t saves = 0;
  const auto save = [&](const Calibration& c) -> Status {
    ++saves;
    EXPECT_LE(c.rows.size(), saves);
    return {};
  };
  const Status status = calibrate_reading(*engine, *calibration, small_reading(), save);
  ASSERT_TRUE(status) << to_text(status.error());
  EXPECT_TRUE(calibration->reading_measured);
  EXPECT_EQ(saves, calibration->rows.size() + 1);
  const auto kept = std::find_if(calibration->rows.begin(), calibration->rows.end(),
                                 [&](const Calibration::Row& row) { return row.policy == calibration->reading; });
  ASSERT_NE(kept, calibration->rows.end());
  EXPECT_GT(kept->right, 0);
  for (const Calibration::Row& row : calibration->rows) {
    const std::array scores = {PolicyScore{kept->right, kept->asked}, PolicyScore{row.right, row.asked}};
    EXPECT_EQ(choose_policy(scores, 0), 0U) << "another was clearly better";
  }
}

TEST(CalibrateReading, GoesOnWhereItStopped) {
  const std::unique_ptr<Engine> engine = open_scripted();
  Result<Calibration> calibration = calibrate_heads(*engine, small());
  ASSERT_TRUE(calibration);
  int allowed = 2;
  const auto stop = [&](const Calibration&) -> Status {
    if (--allowed == 0) return fail(ErrorCode::disk_full, "Full.");
    return {};
  };
  const Status stopped = calibrate_reading(*engine, *calibration, small_reading(), stop);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::disk_full);
  ASSERT_EQ(calibration->rows.size(), 2U);
  const std::vector<Calibration::Row> before = calibration->rows;
  ASSERT_TRUE(calibrate_reading(*engine, *calibration, small_reading(), {}));
  // The rows that were there were not measured again.
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(calibration->rows[i].seconds, before[i].seconds);
  for (std::size_t i = 0; i < calibration->rows.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(calibration->rows[i].policy == calibration->rows[j].policy);
}

TEST(CalibrateReading, WithoutTimeMeasuresNothingAndSaysSo) {
  const std::unique_ptr<Engine> engine = open_scripted();
  Result<Calibration> calibration = calibrate_heads(*engine, small());
  ASSERT_TRUE(calibration);
  CalibrationSettings settings = small_reading();
  settings.reading_seconds = 0.0;
  ASSERT_TRUE(calibrate_reading(*engine, *calibration, settings, {}));
  EXPECT_FALSE(calibration->reading_measured);
  EXPECT_TRUE(calibration->rows.empty());
}

RC_GTEST_PROP(KeyTiles, ScoresAreScaledDotProducts, ()) {
  const auto dim = *rc::gen::element(2, 16, 64, 80);
  const auto count = static_cast<std::size_t>(*rc::gen::inRange(1, 70));
  KeyTiles tiles(dim);
  std::vector<std::vector<float>> keys;
  const auto vector = rc::gen::container<std::vector<int>>(static_cast<std::size_t>(dim), rc::gen::inRange(-8, 9));
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<int> drawn = *vector;
    keys.emplace_back(drawn.begin(), drawn.end());
    tiles.append(keys.back());
  }
  // Truncating and appending again must leave no trace.
  const auto kept = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(count) + 1));
  tiles.truncate(kept);
  for (std::size_t i = kept; i < count; ++i) tiles.append(keys[i]);
  const std::vector<int> drawn = *vector;
  const std::vector<float> query(drawn.begin(), drawn.end());
  const auto begin = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(count)));
  std::vector<float> scores(count - begin);
  tiles.scores(query, begin, count, scores);
  for (std::size_t j = begin; j < count; ++j) {
    const float dot = std::inner_product(query.begin(), query.end(), keys[j].begin(), 0.0F);
    RC_ASSERT(std::abs(scores[j - begin] - dot / std::sqrt(static_cast<float>(dim))) < 1e-3F);
  }
}

TEST(SoftmaxShare, IsTheShareOfTheExponentials) {
  const std::vector<float> scores = {0.0F, std::log(3.0F), 0.0F};
  EXPECT_NEAR(softmax_share(scores, 1, 2), 0.6, 1e-6);
  EXPECT_NEAR(softmax_share(scores, 0, 3), 1.0, 1e-6);
  EXPECT_NEAR(softmax_share(scores, 3, 9), 0.0, 1e-6);
  EXPECT_NEAR(log_sum_exp_of(scores), std::log(5.0), 1e-6);
  EXPECT_TRUE(std::isinf(log_sum_exp_of({})));
}

}  // namespace
}  // namespace modeld
