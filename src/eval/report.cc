#include "eval/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

#include "base/check.h"

namespace modeld {
namespace {

std::string to_text(const Share& share) {
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", share.value, share.interval.low, share.interval.high);
}

std::string to_text(const Ratio& ratio) {
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.value, ratio.interval.low, ratio.interval.high);
}

std::string recall_columns(const Cell& cell) {
  std::vector<std::string> shares;
  for (const std::int32_t k : kRecallAt) {
    if (const std::optional<double> recall = cell.recall(k)) shares.push_back(fmt::format("{:.2f}", *recall));
  }
  return fmt::format("{}", fmt::join(shares, " / "));
}

std::string read_column(const Cell& cell) {
  const std::optional<double> read = cell.read_right();
  return read ? fmt::format("{:.2f}", *read) : "";
}

/// Score by quarter of the text.
std::string by_depth(const Cell& cell) {
  std::array<double, 4> right{};
  std::array<std::int64_t, 4> asked{};
  for (const QuestionResult& r : cell.results) {
    const auto band = std::min<std::size_t>(3, static_cast<std::size_t>(r.depth * 4.0));
    ++asked[band];
    right[band] += r.forced_right;
  }
  std::string text;
  for (std::size_t band = 0; band < 4; ++band) {
    if (band > 0) text += " / ";
    text += asked[band] == 0 ? std::string("–") : fmt::format("{:.2f}", right[band] / static_cast<double>(asked[band]));
  }
  return text;
}

}  // namespace

std::string summary(const Cell& cell) {
  const auto asked = static_cast<std::int64_t>(cell.results.size());
  std::string text = fmt::format("{} {} {}: {:g} of {} right, {}", cell.task, cell.tokens, cell.mode,
                                 cell.forced_right(), asked, to_text(share_of(cell.forced_right(), asked)));
  if (cell.free_asked() > 0) text += fmt::format("; free {:g} of {}", cell.free_right(), cell.free_asked());
  if (cell.recall(1))
    text += fmt::format("; recall@1/4/8/16 {}; read from its block {}", recall_columns(cell), read_column(cell));
  return text + fmt::format("; {:.0f} ms a question\n", mean_seconds(cell) * 1e3);
}

std::string eval_report(std::span<const Cell> cells, std::span<const CellScores> scores, const MachineStamp& stamp,
                        std::string_view notes) {
  MODELD_CHECK(cells.size() == scores.size());
  std::string text =
      "# Evaluation\n\n![Scores by task and mode](report.svg)\n\n" + to_markdown(stamp) + std::string(notes) +
      "\nScore: the answer right after a forced answer prefix, with Wilson's 95 % interval. Retention: score ÷ the "
      "same model's score on the passage alone in a fresh context of 300 tokens (mode fresh), over the same "
      "questions, with the paired bootstrap's 95 % interval. Free: the answer occurs in 32 freely generated "
      "tokens an answer. Recall: the share of the answers' blocks among the first k for the question; read: the share "
      "that was read. Where several answers are wanted, the score is the share of them that is given, in any order. "
      "Depth: score by quarter of the text.\n\n"
      "| task | tokens | mode | n | score | retention | free | recall@1 / 4 / 8 / 16 | read | by depth | ms a question "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    const CellScores& score = scores[i];
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0f} |\n", cell.task, cell.tokens,
                        cell.mode, score.forced.asked, to_text(score.forced),
                        score.retention ? to_text(*score.retention) : "", score.free ? to_text(*score.free) : "",
                        recall_columns(cell), read_column(cell), by_depth(cell), score.question_seconds * 1e3);
  }
  return text;
}

}  // namespace modeld
