#include "cli/terminal.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace modeld {
namespace {

TEST(CountText, GroupsByThousands) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(64000), "64,000");
  EXPECT_EQ(count_text(-1234567), "-1,234,567");
}

RC_GTEST_PROP(CountText, KeepsEveryDigit, (std::int64_t count)) {
  std::string text = count_text(count);
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  RC_ASSERT(text == std::to_string(count));
}

TEST(BytesText, UsesPowersOf1024AndNeverFourDigits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.0 kB");
  EXPECT_EQ(bytes_text(1536), "1.5 kB");
  EXPECT_EQ(bytes_text((std::int64_t{1} << 20) - 1), "1.0 MB");
  EXPECT_EQ(bytes_text(std::int64_t{1} << 30), "1.0 GB");
}

TEST(DurationText, NamesTheTwoLargestUnits) {
  EXPECT_EQ(duration_text(0.25), "250 ms");
  EXPECT_EQ(duration_text(4.21), "4.2 s");
  EXPECT_EQ(duration_text(59.2), "59 s");
  EXPECT_EQ(duration_text(132.0), "2 min 12 s");
  EXPECT_EQ(duration_text(3.0 * 3600 + 5 * 60 + 40), "3 h 5 min");
}

TEST(ProgressLine, SaysShareRateAndTimeLeft) {
  const Progress progress{"reading the text", 33000, 64000, "tokens"};
  EXPECT_EQ(progress_line(progress, 100.0, 0, false),
            "reading the text   51 %  33,000 of 64,000 tokens  330 tokens/s  1 min 34 s left");
}

TEST(ProgressLine, AResumedStageCountsOnlyWhatIsNew) {
  const Progress progress{"reading the text", 33000, 64000, "tokens"};
  const std::string line = progress_line(progress, 100.0, 32000, false);
  EXPECT_NE(line.find("  10 tokens/s"), std::string::npos) << line;
}

TEST(ProgressLine, WithoutATotalThereIsNoPromise) {
  const std::string line = progress_line({"looking", 50, 0, "files"}, 10.0, 0, true);
  EXPECT_EQ(line, "looking  50 files  5.0 files/s  in 10 s");
}

TEST(ProgressDisplay, QuietListensToNothing) {
  ProgressDisplay display(ProgressStyle::quiet);
  EXPECT_FALSE(display.sink());
}

}  // namespace
}  // namespace modeld
