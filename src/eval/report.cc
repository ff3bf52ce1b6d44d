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
    if (r.depth < 0.0) return "";  // about the whole text
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

/// `recall`: by k, of the questions that were ranked.
template <typename Recall>
std::string selector_row(const Cell& cell, std::string_view selector, Recall recall) {
  std::string row = fmt::format("| {} | {} | {} | {} |", cell.task, cell.tokens, selector, cell.ranked());
  for (const std::int32_t k : kRecallAt) row += fmt::format(" {:.2f} |", recall(k).value_or(0.0));
  return row + "\n";
}

/// One row for each cell's task and selector; nothing where no cell was ranked by any but ours.
std::string selector_table(std::span<const Cell> cells) {
  std::string rows;
  for (const Cell& cell : cells) {
    const std::vector<std::string> rivals = cell.rivals();
    if (rivals.empty()) continue;
    rows += selector_row(cell, "fused (ours)", [&](std::int32_t k) { return cell.recall(k); });
    for (const std::string& rival : rivals)
      rows += selector_row(cell, rival, [&](std::int32_t k) { return cell.recall(k, rival); });
  }
  if (rows.empty()) return "";
  return "\n## Selectors, same questions, same index\n\n"
         "Recall by each selector alone, with the same queries of the same heads and the same keys. heads, bm25, "
         "embedder: the lists that ours fuses. quest: the upper bound of a block's products by the smallest and the "
         "largest of its keys in each dimension (Tang et al. 2024), of the question's tokens the largest; quest-16: of "
         "pages of 16 tokens, as in the paper, the best of a block; means: the product with the mean of a block's "
         "keys, mean over the question's tokens. All summed over heads.\n\n"
         "| task | tokens | selector | n | recall@1 | @4 | @8 | @16 |\n"
         "|---|---|---|---|---|---|---|---|\n" +
         rows;
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
  if (cells.empty()) return "# Evaluation\n\n" + to_markdown(stamp) + std::string(notes);
  std::string text =
      "# Evaluation\n\n![Scores by task and mode](report.svg)\n\n" + to_markdown(stamp) + std::string(notes) +
      "\nScore: the answer right after a forced answer prefix, with Wilson's 95 % interval. Retention: score ÷ the "
      "same model's score on the passage alone in a fresh context of 300 tokens (mode fresh), over the same "
      "questions, with the paired bootstrap's 95 % interval. Free: the answer occurs in 32 freely generated "
      "tokens an answer. Recall: the share of the answers' blocks among the first k for the question; read: the share "
      "that was read. Where several answers are wanted, the score is the share of them that is given, in any order. "
      "Depth: score by quarter of the text. Questions about the whole text have no passage: they are not asked in the "
      "modes fresh and oracle, and the text cut to a number of tokens is asked as it is.\n\n"
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
  return text + selector_table(cells);
}

}  // namespace modeld
