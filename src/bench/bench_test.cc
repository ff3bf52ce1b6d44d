#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "bench/command.h"
#include "bench/measures.h"
#include "engine/scripted/open.h"
#include "needles/needles.h"

namespace modeld {
namespace {

namespace fs = std::filesystem;

/// The scripted engine without sessions, as the plain library.
class PlainScripted final : public PlainModel {
 public:
  Status open_context(std::int32_t cells, std::int32_t) override {
    at_ = Place(0);
    ContextSpec spec;
    spec.cells = cells;
    return engine_->open_context(spec);
  }
  void close_context() override { engine_->close_context(); }
  Status compute(std::span<const Token> tokens) override {
    std::vector<BatchToken> batch;
    for (const Token token : tokens) {
      batch.push_back({token, at_, 0, false});
      ++at_;
    }
    batch.back().logits = true;
    last_ = batch.size() - 1;
    return engine_->compute(batch);
  }
  std::span<const float> logits() const override { return engine_->logits(last_); }
  Token greedy() const override {
    const auto row = logits();
    return static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
  }

 private:
  std::unique_ptr<Engine> engine_ = open_scripted();
  Place at_;
  std::size_t last_ = 0;
};

TEST(Timeline, GivesTheSpeedOfSlices) {
  Timeline line;
  line.add(0.0, 0.0);
  line.add(1000.0, 10.0);
  line.add(3000.0, 20.0);
  EXPECT_DOUBLE_EQ(line.at(500.0), 5.0);
  EXPECT_DOUBLE_EQ(line.at(2000.0), 15.0);
  EXPECT_DOUBLE_EQ(line.speed(0.0, 500.0, 2), 100.0);
  EXPECT_DOUBLE_EQ(line.speed(1000.0, 1000.0, 2), 200.0);
}

TEST(Bench, MeasuresEveryRatioAndWritesTableAndJson) {
  const fs::path folder = fs::temp_directory_path() / ("modeld-bench-test-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "text.txt") << filler_prose(200'000, 5);
  Calibration calibration;
  calibration.heads = {{HeadRef{1, 0}, 0.9}};
  calibration.distance = 64;
  calibration.rule = ScoreRule::sigmoid;
  calibration.reading.sinks = 16;
  calibration.reading.recent = 256;
  BenchOptions options;
  options.text = folder / "text.txt";
  options.tokens = 28'672;
  options.mode_tokens = 2048;
  options.plain_tokens = {512, 1024};
  options.hot_tokens = 1400;
  options.output = folder / "out";
  const auto engine = open_scripted();
  const OpenPlain plain = []() -> Result<std::unique_ptr<PlainModel>> { return std::make_unique<PlainScripted>(); };
  const OpenEngine second = []() -> Result<std::unique_ptr<Engine>> { return open_scripted(); };
  std::string said;
  const Status status =
      run_bench(*engine, second, plain, calibration, options, [&said](std::string_view text) { said += text; });
  ASSERT_TRUE(status) << to_text(status.error());
  for (const char* row : {"prefill, end ÷ 6-16k", "decode, long ÷ short stream", "question at 16k: probe pass",
                          "question at the full stream: all before the first word", "slowest turn", "its prediction",
                          "peak resident memory", "prefill streamed, window 1k", "prefill isolated, run-up 32",
                          "retrieval work of one question ÷ that", "plain dense prefill of 1024", "exact mode ÷ plain"})
    EXPECT_NE(said.find(row), std::string::npos) << row;
  EXPECT_GT(fs::file_size(options.output / "bench.json"), 1000U);
  EXPECT_GT(fs::file_size(options.output / "bench.md"), 1000U);
  fs::remove_all(folder);
}

TEST(Bench, RefusesAStreamWithoutSlicesToCompare) {
  BenchOptions options;
  options.tokens = 8192;
  const auto engine = open_scripted();
  const Status status = run_bench(*engine, {}, {}, Calibration{}, options, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::bad_argument);
}

}  // namespace
}  // namespace modeld
