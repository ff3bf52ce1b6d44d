#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace modeld {
namespace {

constexpr std::size_t kBarWidth = 24;
constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kLineEvery{5};

}  // namespace

ProgressStyle progress_style(bool quiet) {
  if (quiet) return ProgressStyle::quiet;
  return isatty(STDERR_FILENO) == 1 ? ProgressStyle::bar : ProgressStyle::lines;
}

std::string count_text(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array units = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1023.95 && unit + 1 < units.size()) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string duration_text(double seconds) {
  if (seconds < 1.0) return fmt::format("{:.0f} ms", seconds * 1000.0);
  if (seconds < 10.0) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string progress_line(const Progress& progress, double seconds, std::uint64_t base, bool bar) {
  std::string line(progress.stage);
  const std::uint64_t fresh = progress.done > base ? progress.done - base : 0;
  const double rate = seconds > 0.0 ? static_cast<double>(fresh) / seconds : 0.0;
  if (progress.total > 0) {
    const double share = std::min(1.0, static_cast<double>(progress.done) / static_cast<double>(progress.total));
    if (bar) {
      const auto full = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
      line += fmt::format("  [{}{}]", std::string(full, '#'), std::string(kBarWidth - full, '.'));
    }
    line += fmt::format("  {:3.0f} %  {} of {} {}", std::floor(share * 100.0),
                        count_text(static_cast<std::int64_t>(progress.done)),
                        count_text(static_cast<std::int64_t>(progress.total)), progress.unit);
  } else {
    line += fmt::format("  {} {}", count_text(static_cast<std::int64_t>(progress.done)), progress.unit);
  }
  if (seconds < 0.5 || rate <= 0.0) return line;
  line += rate >= 10.0 ? fmt::format("  {} {}/s", count_text(std::llround(rate)), progress.unit)
                       : fmt::format("  {:.1f} {}/s", rate, progress.unit);
  if (progress.total > progress.done)
    line += fmt::format("  {} left", duration_text(static_cast<double>(progress.total - progress.done) / rate));
  else
    line += fmt::format("  in {}", duration_text(seconds));
  return line;
}

ProgressSink ProgressDisplay::sink() {
  if (style_ == ProgressStyle::quiet) return {};
  return [this](const Progress& progress) { show(progress); };
}

void ProgressDisplay::show(const Progress& progress) {
  const Clock::time_point now = Clock::now();
  const bool last = progress.total > 0 && progress.done >= progress.total;
  if (progress.stage == stage_ && complete_ && last) return;
  if (progress.stage != stage_ || complete_) {
    finish();
    stage_ = progress.stage;
    begin_ = now;
    shown_ = now;
    base_ = progress.done;
    complete_ = false;
  }
  const bool bar = style_ == ProgressStyle::bar;
  if (!last && now - shown_ < (bar ? Clock::duration(kRedraw) : Clock::duration(kLineEvery))) return;
  shown_ = now;
  complete_ = last;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const std::string line = progress_line(progress, seconds, base_, bar);
  fmt::print(stderr, "{}{}{}", bar ? "\r" : "", line, bar ? "\x1b[K" : "\n");
  open_ = bar;
  if (last) end_line();
  std::fflush(stderr);
}

void ProgressDisplay::end_line() {
  if (open_) fmt::print(stderr, "\n");
  open_ = false;
}

void ProgressDisplay::finish() {
  end_line();
  stage_.clear();
  complete_ = false;
}

void ProgressDisplay::note(std::string_view line) {
  if (style_ == ProgressStyle::quiet) return;
  finish();
  fmt::print(stderr, "{}\n", line);
}

}  // namespace modeld
