#include "eval/scores.h"

#include <algorithm>
#include <map>

namespace modeld {
namespace {

std::optional<Ratio> retention(const Cell& cell, const Cell& fresh, std::uint64_t seed) {
  std::map<std::string, double> alone;
  for (const QuestionResult& r : fresh.results) alone[r.question] = r.forced_right;
  std::vector<double> a;
  std::vector<double> b;
  for (const QuestionResult& r : cell.results) {
    const auto found = alone.find(r.question);
    if (found == alone.end()) continue;
    a.push_back(r.forced_right);
    b.push_back(found->second);
  }
  if (a.empty()) return std::nullopt;
  return paired_ratio(a, b, seed);
}

}  // namespace

Share share_of(double right, std::int64_t asked) {
  return {.right = right,
          .asked = asked,
          .value = asked == 0 ? 0.0 : right / static_cast<double>(asked),
          .interval = wilson(right, asked)};
}

double mean_seconds(const Cell& cell) {
  double sum = 0.0;
  for (const QuestionResult& r : cell.results) sum += r.seconds;
  return cell.results.empty() ? 0.0 : sum / static_cast<double>(cell.results.size());
}

std::vector<CellScores> scores_of(std::span<const Cell> cells, std::uint64_t seed) {
  std::vector<CellScores> all;
  all.reserve(cells.size());
  for (const Cell& cell : cells) {
    CellScores scores{.task = cell.task,
                      .mode = cell.mode,
                      .tokens = cell.tokens,
                      .parameters = cell.parameters,
                      .forced = share_of(cell.forced_right(), static_cast<std::int64_t>(cell.results.size())),
                      .free = std::nullopt,
                      .retention = std::nullopt,
                      .recall = std::nullopt,
                      .read = cell.read_right(),
                      .question_seconds = mean_seconds(cell),
                      .prepare_seconds = cell.prepare_seconds};
    if (cell.free_asked() > 0) scores.free = share_of(cell.free_right(), cell.free_asked());
    const auto fresh = std::find_if(cells.begin(), cells.end(), [&](const Cell& other) {
      return other.mode == "fresh" && other.task == cell.task;
    });
    if (fresh != cells.end() && cell.mode != fresh->mode) scores.retention = retention(cell, *fresh, seed);
    if (scores.read) {
      scores.recall.emplace();
      for (std::size_t i = 0; i < kRecallAt.size(); ++i) (*scores.recall)[i] = cell.recall(kRecallAt[i]).value_or(0.0);
    }
    all.push_back(std::move(scores));
  }
  return all;
}

}  // namespace modeld
