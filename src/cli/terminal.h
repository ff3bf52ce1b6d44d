// What long work shows on stderr: a bar with rate and time left on a terminal, a line every few seconds elsewhere,
// nothing when quiet.
//
// Thread: used from one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/progress.h"

namespace modeld {

enum class ProgressStyle : std::uint8_t { bar, lines, quiet };

/// The style for this stderr.
ProgressStyle progress_style(bool quiet);

class ProgressDisplay {
 public:
  explicit ProgressDisplay(ProgressStyle style) : style_(style) {}
  ~ProgressDisplay() { finish(); }
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// The sink borrows this display.
  [[nodiscard]] ProgressSink sink();
  /// Ends the bar's line, so that other output starts on its own.
  void finish();
  /// A line of its own for the person, unless quiet.
  void note(std::string_view line);

 private:
  void show(const Progress& progress);
  void end_line();

  using Clock = std::chrono::steady_clock;
  ProgressStyle style_;
  std::string stage_;
  Clock::time_point begin_;
  Clock::time_point shown_;
  /// What was done when the stage began: a resumed stage does not count as fast.
  std::uint64_t base_ = 0;
  /// A bar stands on the current line.
  bool open_ = false;
  /// The stage has reached its total: more of the same says nothing new.
  bool complete_ = false;
};

/// "reading the text  [#####.....]  52 %  33,408 of 64,000 tokens  231 tokens/s  2 min 12 s left". Pure.
std::string progress_line(const Progress& progress, double seconds, std::uint64_t base, bool bar);

/// "850 ms", "12 s", "2 min 12 s", "3 h 5 min".
std::string duration_text(double seconds);
/// "512 B", "1.5 MB", "23.0 GB" (powers of 1024).
std::string bytes_text(std::int64_t bytes);
/// "64,000".
std::string count_text(std::int64_t count);

}  // namespace modeld
