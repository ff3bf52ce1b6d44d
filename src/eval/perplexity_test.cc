#include "eval/perplexity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "eval/corpus.h"
#include "eval/dense.h"
#include "needles/needles.h"
#include "session/session_fixture.h"

namespace modeld {
namespace {

namespace fs = std::filesystem;

using testing::scripted_calibration;

class PerplexityTest : public ::testing::Test {
 protected:
  PerplexityTest()
      : folder_(fs::temp_directory_path() / ("modeld-perplexity-test-" + std::to_string(::getpid()) + "-" +
                                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "prose.txt") << prose();
    ScriptedOptions scripted;
    scripted.trained_window = 2048;
    engine_ = open_scripted(std::move(scripted));
    options_.text = folder_ / "prose.txt";
    options_.questions = 0;
    options_.passkeys = 0;
    options_.perplexity = {4096, 2048};
    options_.probes = 2;
    options_.dense_tokens = {2048};
    options_.hot_tokens = 1800;
    options_.output = folder_ / "out";
  }
  ~PerplexityTest() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  PerplexityTest(const PerplexityTest&) = delete;
  PerplexityTest& operator=(const PerplexityTest&) = delete;

  /// Filler in lines.
  static std::string prose() {
    std::string text = filler_prose(60'000, 5);
    for (std::size_t at = text.find(". "); at != std::string::npos; at = text.find(". ", at + 60)) text[at + 1] = '\n';
    return text;
  }

  std::vector<PerplexityCell> measure() {
    auto cells = run_perplexity(*engine_, scripted_calibration(), options_, {}, count_, nullptr);
    if (!cells) ADD_FAILURE() << to_text(cells.error());
    return cells.value_or(std::vector<PerplexityCell>{});
  }

  fs::path folder_;
  std::unique_ptr<Engine> engine_;
  EvalOptions options_;
  int scorings_ = 0;
  ProgressSink count_ = [this](const Progress& p) { scorings_ += p.done == 512 && p.total == 512 ? 1 : 0; };
};

TEST_F(PerplexityTest, IsMeasuredInEveryModeOverTheSameTokensAndAttendsNoMoreThanTheHotSet) {
  const std::vector<PerplexityCell> cells = measure();
  ASSERT_EQ(cells.size(), 10U);  // two probes: three modes at 2048 tokens, two at 4096
  std::vector<std::string> scored;
  for (const PerplexityCell& cell : cells) {
    EXPECT_EQ(cell.nll.size(), 512U);
    for (const double nll : cell.nll) EXPECT_TRUE(std::isfinite(nll) && nll >= 0.0);
    if (cell.mode == "dense") {
      EXPECT_EQ(cell.tokens, 2048);
      EXPECT_NEAR(static_cast<double>(cell.attended_tokens), 2047.0, 2.0);
    } else {
      EXPECT_LE(cell.attended_tokens, options_.hot_tokens);
    }
    const std::size_t at = cell.parameters.find("scored=");
    scored.push_back(std::to_string(cell.probe) + cell.parameters.substr(at, cell.parameters.find(' ', at) - at));
  }
  std::sort(scored.begin(), scored.end());
  scored.erase(std::unique(scored.begin(), scored.end()), scored.end());
  EXPECT_EQ(scored.size(), 2U) << "the same tokens at each length and in each mode";
}

TEST_F(PerplexityTest, FinishedCellsAreTakenFromTheFolderAndOthersAreMeasured) {
  const std::vector<PerplexityCell> first = measure();
  EXPECT_EQ(scorings_, 8);
  scorings_ = 0;
  const std::vector<PerplexityCell> again = measure();
  EXPECT_EQ(scorings_, 0);
  ASSERT_EQ(again.size(), first.size());
  EXPECT_EQ(again[0].nll, first[0].nll);
  std::ofstream(options_.output / "perplexity-4096-ours-2.json") << "{";
  EXPECT_EQ(measure().size(), first.size());
  EXPECT_EQ(scorings_, 1);
  scorings_ = 0;
  options_.hot_tokens = 1700;
  measure();
  EXPECT_EQ(scorings_, 8);
}

TEST_F(PerplexityTest, StandsInTheReportAloneWithoutQuestions) {
  std::string said;
  const Status status =
      run_eval(*engine_, scripted_calibration(), options_, [&said](std::string_view text) { said += text; });
  ASSERT_TRUE(status) << to_text(status.error());
  std::ostringstream report;
  report << std::ifstream(options_.output / "report.md").rdbuf();
  EXPECT_NE(report.str().find("| tokens | dense | ours |"), std::string::npos) << report.str();
  EXPECT_NE(report.str().find("\n| 2048 | "), std::string::npos);
  EXPECT_NE(report.str().find("\n| 4096 | – | "), std::string::npos);
  EXPECT_EQ(report.str().find("| task |"), std::string::npos);
  EXPECT_NE(said.find("perplexity 2048 ours, probe 1: "), std::string::npos) << said;
  EXPECT_EQ(report.str().find("report.svg"), std::string::npos);
  EXPECT_FALSE(fs::exists(options_.output / "report.svg"));
}

TEST_F(PerplexityTest, ForProgramsIsInTheOneObjectWithWhatTheTableHolds) {
  options_.json = true;
  std::string said;
  ASSERT_TRUE(run_eval(*engine_, scripted_calibration(), options_, [&said](std::string_view text) { said += text; }));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  const nlohmann::json object = nlohmann::json::parse(said);
  EXPECT_TRUE(object.at("picture").is_null());
  EXPECT_TRUE(object.at("tasks").empty());
  std::size_t scores = 0;
  for (const auto& [length, modes] : object.at("perplexity").items()) {
    for (const auto& [mode, score] : modes.items()) {
      ++scores;
      EXPECT_GE(score.at("probes"), 1);
      EXPECT_LE(score.at("interval").at(0), score.at("perplexity"));
      EXPECT_GE(score.at("interval").at(1), score.at("perplexity"));
      EXPECT_LE(score.at("attended_tokens"), std::stoll(length));
    }
  }
  EXPECT_EQ(scores, perplexity_scores(measure(), options_.seed).size());
  EXPECT_GE(scores, 4U);
}

TEST_F(PerplexityTest, RefusesALengthThatTheTextDoesNotHave) {
  options_.perplexity = {1'000'000};
  EXPECT_EQ(run_eval(*engine_, scripted_calibration(), options_, {}).error().code, ErrorCode::bad_argument);
  options_.perplexity = {512};
  EXPECT_EQ(run_eval(*engine_, scripted_calibration(), options_, {}).error().code, ErrorCode::bad_argument);
  options_.text.clear();
  options_.perplexity = {2048};
  EXPECT_EQ(run_eval(*engine_, scripted_calibration(), options_, {}).error().code, ErrorCode::bad_argument);
}

TEST_F(PerplexityTest, DenseScoresEqualEachOtherHoweverTheTextIsCut) {
  const std::vector<Token> tokens = *engine_->tokenize(filler_prose(2'000, 3), false, false);
  const std::span<const Token> all(tokens);
  auto runner = DenseRunner::open(*engine_, 1024, 0);
  ASSERT_TRUE(runner);
  const auto whole = runner->score(all);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->nll.size(), tokens.size() - 1);
  ASSERT_TRUE(runner->reset());
  ASSERT_TRUE(runner->extend(all.first(100)));
  const auto rest = runner->score(all.subspan(100));
  ASSERT_TRUE(rest);
  ASSERT_EQ(rest->nll.size(), tokens.size() - 101);
  EXPECT_EQ(rest->attended_tokens, whole->attended_tokens);
  for (std::size_t i = 0; i < rest->nll.size(); ++i) EXPECT_NEAR(rest->nll[i], whole->nll[i + 100], 1e-4);
}

TEST_F(PerplexityTest, ProbesAreSpreadBeginAtLinesAndHaveTheirLengthBeforeThem) {
  const std::string text = prose();
  const auto offsets = token_offsets(*engine_, text);
  ASSERT_TRUE(offsets);
  const auto tokens = static_cast<std::int64_t>(offsets->tokens.size());
  for (const std::int64_t longest : {std::int64_t{1024}, std::int64_t{4096}, tokens - 2048, tokens - 256}) {
    const std::vector<std::int64_t> places = probe_places(text, offsets->bytes, longest, 4);
    ASSERT_FALSE(places.empty()) << longest;
    EXPECT_EQ(places.size(), longest == tokens - 256 ? 1U : longest == tokens - 2048 ? 2U : 4U);
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_GE(places[i] + kScoredTokens, longest);
      EXPECT_LE(places[i] + kScoredTokens, tokens);
      EXPECT_EQ(text[offsets->bytes[static_cast<std::size_t>(places[i])] - 1], '\n');
      if (i > 0) {
        EXPECT_GE(places[i] - places[i - 1], kScoredTokens);
      }
    }
  }
  EXPECT_TRUE(probe_places(text, offsets->bytes, tokens, 4).empty());
  // One more length leaves the places as they are.
  EXPECT_EQ(probe_places(text, offsets->bytes, 1024, 4), probe_places(text, offsets->bytes, 2048, 4));
}

TEST_F(PerplexityTest, TheReportIsTheExponentialOfTheMeanAndItsRatiosArePaired) {
  std::vector<PerplexityCell> cells;
  for (const std::int32_t probe : {1, 2}) {
    for (const auto& [mode, nll] : {std::pair{"dense", 2.0}, {"ours", 2.5}, {"sinks+recent", 3.0}}) {
      PerplexityCell cell{.mode = mode, .tokens = 8192, .probe = probe, .parameters = {}, .nll = {}};
      cell.nll.assign(512, nll + probe);  // probes differ by more than modes
      cell.attended_tokens = 1000;
      cells.push_back(cell);
    }
  }
  const std::string report = perplexity_report(cells, 1);
  EXPECT_NE(report.find("| 8192 | 33.12 ["), std::string::npos) << report;  // exp(3.5)
  EXPECT_NE(report.find("| 1.649 [1.649, 1.649] | 0.607 [0.607, 0.607] |"), std::string::npos) << report;
}

}  // namespace
}  // namespace modeld
