// What perplexity cells come to: a table for people, and the same values for programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "eval/modes.h"
#include "eval/perplexity.h"

namespace modeld {
namespace {

/// Tokens that are drawn together by the bootstrap.
constexpr std::size_t kStretch = 64;

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Mean of each stretch.
void add_stretches(std::span<const double> values, std::vector<double>& means) {
  for (; !values.empty(); values = values.subspan(std::min(kStretch, values.size())))
    means.push_back(mean(values.first(std::min(kStretch, values.size()))));
}

/// exp of the mean of stretches, with its interval.
Ratio exp_mean(const std::vector<double>& stretches, std::uint64_t seed) {
  const Interval interval = mean_interval(stretches, seed);
  return {std::exp(mean(stretches)), {std::exp(interval.low), std::exp(interval.high)}};
}

std::string text_of(const Ratio& value, int digits) {
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", value.value, digits, value.interval.low, digits, value.interval.high,
                     digits);
}

using Picked = std::vector<const PerplexityCell*>;

Picked pick(std::span<const PerplexityCell> cells, std::int64_t tokens, std::string_view mode) {
  Picked picked;
  for (const PerplexityCell& cell : cells)
    if (cell.tokens == tokens && cell.mode == mode) picked.push_back(&cell);
  return picked;
}

PerplexityScore score_of(const Picked& cells, std::uint64_t seed) {
  PerplexityScore score;
  score.mode = cells.front()->mode;
  score.tokens = cells.front()->tokens;
  score.probes = static_cast<std::int64_t>(cells.size());
  std::vector<double> stretches;
  for (const PerplexityCell* cell : cells) {
    add_stretches(cell->nll, stretches);
    score.attended_tokens = std::max(score.attended_tokens, cell->attended_tokens);
    score.prepare_seconds += cell->prepare_seconds / static_cast<double>(cells.size());
    score.seconds += cell->seconds / static_cast<double>(cells.size());
  }
  score.perplexity = exp_mean(stretches, seed);
  return score;
}

/// Perplexity of `a` ÷ that of `b` at the probes that both have.
std::string ratio_column(const Picked& a, const Picked& b, std::uint64_t seed) {
  std::vector<double> stretches;
  for (const PerplexityCell* one : a) {
    for (const PerplexityCell* other : b) {
      if (one->probe != other->probe) continue;
      std::vector<double> difference(one->nll.size());
      std::transform(one->nll.begin(), one->nll.end(), other->nll.begin(), difference.begin(), std::minus<>());
      add_stretches(difference, stretches);
    }
  }
  return stretches.empty() ? "–" : text_of(exp_mean(stretches, seed), 3);
}

std::vector<std::int64_t> lengths_of(std::span<const PerplexityCell> cells) {
  std::vector<std::int64_t> lengths;
  for (const PerplexityCell& cell : cells) lengths.push_back(cell.tokens);
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

}  // namespace

std::string summary(const PerplexityCell& cell) {
  return fmt::format("perplexity {} {}, probe {}: {:.3f}; {} tokens attended, read in {:.0f} s, scored in {:.1f} s\n",
                     cell.tokens, cell.mode, cell.probe, std::exp(mean(cell.nll)), cell.attended_tokens,
                     cell.prepare_seconds, cell.seconds);
}

std::vector<PerplexityScore> perplexity_scores(std::span<const PerplexityCell> cells, std::uint64_t seed) {
  std::vector<PerplexityScore> scores;
  for (const std::int64_t length : lengths_of(cells)) {
    for (const std::string_view mode : {kDense, kOurs, kSinksRecent}) {
      const Picked picked = pick(cells, length, mode);
      if (!picked.empty()) scores.push_back(score_of(picked, seed));
    }
  }
  return scores;
}

std::string perplexity_report(std::span<const PerplexityCell> cells, std::uint64_t seed) {
  std::int32_t probes = 0;
  for (const PerplexityCell& cell : cells) probes = std::max(probes, cell.probe);
  const std::vector<PerplexityScore> scores = perplexity_scores(cells, seed);
  std::string text = fmt::format(
      "\nPerplexity of the last {} tokens of each length, at {} places of the text: the same tokens in every row and "
      "mode, so that rows can be compared; a longer length begins earlier. Each mode: exp of the mean negative "
      "log-likelihood with the 95 % interval of the bootstrap over stretches of {} tokens; the most tokens that one "
      "was "
      "predicted from; mean seconds a place, reading + scoring. Ratios are paired, below 1: the first one predicts "
      "better.\n\n"
      "| tokens | dense | ours | sinks + recent | ours ÷ dense | ours ÷ sinks + recent |\n|---|---|---|---|---|---|\n",
      kScoredTokens, probes, kStretch);
  for (const std::int64_t length : lengths_of(cells)) {
    text += fmt::format("| {} |", length);
    for (const std::string_view mode : {kDense, kOurs, kSinksRecent}) {
      const auto score = std::find_if(scores.begin(), scores.end(), [&](const PerplexityScore& one) {
        return one.tokens == length && one.mode == mode;
      });
      text += score == scores.end() ? " – |"
                                    : fmt::format(" {}; {}; {:.0f} + {:.1f} s |", text_of(score->perplexity, 2),
                                                  score->attended_tokens, score->prepare_seconds, score->seconds);
    }
    const Picked ours = pick(cells, length, kOurs);
    text += fmt::format(" {} | {} |\n", ratio_column(ours, pick(cells, length, kDense), seed),
                        ratio_column(ours, pick(cells, length, kSinksRecent), seed));
  }
  return text;
}

}  // namespace modeld
