#include "plan/map_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace modeld {
namespace {

Status check_sizes(const MapReduceRequest& r) {
  const std::array sizes = {r.hot, r.sinks, r.question, r.head, r.label, r.lane};
  const bool below = std::any_of(sizes.begin(), sizes.end(), [](std::int32_t size) { return size < 0; }) ||
                     std::any_of(r.blocks.begin(), r.blocks.end(), [](std::int32_t size) { return size <= 0; });
  if (!below && r.partial_answer > 0 && r.answer > 0) return {};
  return fail(ErrorCode::bad_argument, "A pass over a text needs sizes that are not negative, and room for answers.",
              {{"partial_answer_tokens", r.partial_answer}, {"answer_tokens", r.answer}});
}

tl::unexpected<Error> too_small(const MapReduceRequest& r, std::int64_t needed) {
  return fail(ErrorCode::hot_too_small,
              fmt::format("To read the whole text part by part, a question of {} tokens with answers of {} needs a hot "
                          "set of {} tokens at least, and it has {}. Choose a larger hot set, a shorter question or a "
                          "shorter answer.",
                          r.question, std::max(r.partial_answer, r.answer), needed, r.hot),
              {{"hot_tokens", r.hot}, {"needed_tokens", needed}, {"question_tokens", r.question}});
}

/// As many into each as fit: no other way of cutting needs fewer.
Result<std::vector<MapPart>> parts_of(const MapReduceRequest& r) {
  const std::int64_t answer = std::max(r.partial_answer, r.answer);
  const std::int64_t beside = std::int64_t{r.sinks} + std::max<std::int64_t>(r.question + answer, r.lane);
  std::vector<MapPart> parts;
  for (std::size_t b = 0; b < r.blocks.size(); ++b) {
    const std::int32_t size = r.blocks[b];
    if (beside + size > r.hot) return too_small(r, beside + size);
    if (parts.empty() || beside + parts.back().tokens + size > r.hot) parts.push_back({.first = b});
    ++parts.back().count;
    parts.back().tokens += size;
  }
  return parts;
}

/// `count` in `groups`, no two of which differ by more than one.
std::vector<std::int32_t> even(std::int64_t count, std::int64_t groups) {
  std::vector<std::int32_t> sizes;
  sizes.reserve(static_cast<std::size_t>(groups));
  for (std::int64_t g = 0; g < groups; ++g)
    sizes.push_back(static_cast<std::int32_t>((g + 1) * count / groups - g * count / groups));
  return sizes;
}

}  // namespace

Result<MapReducePlan> plan_map_reduce(const MapReduceRequest& request) {
  MODELD_TRY_VOID(check_sizes(request));
  MapReducePlan plan;
  MODELD_TRY(plan.parts, parts_of(request));
  plan.read_tokens = std::accumulate(request.blocks.begin(), request.blocks.end(), std::int64_t{0});
  auto answers = static_cast<std::int64_t>(plan.parts.size());
  plan.computed_tokens = answers * request.question;
  plan.written_tokens = answers > 1 ? answers * request.partial_answer : answers * request.answer;
  if (answers <= 1) return plan;
  const std::int64_t one = std::int64_t{request.label} + request.partial_answer;
  const std::int64_t beside =
      std::int64_t{request.head} + request.question + std::max(request.partial_answer, request.answer);
  if (beside + 2 * one > request.hot) return too_small(request, beside + 2 * one);
  const std::int64_t together = (request.hot - beside) / one;
  while (answers > 1) {
    plan.rounds.push_back(even(answers, (answers + together - 1) / together));
    answers = static_cast<std::int64_t>(plan.rounds.back().size());
    for (const std::int32_t count : plan.rounds.back()) {
      if (count == 1) continue;
      plan.computed_tokens += request.head + count * one + request.question;
      plan.written_tokens += answers == 1 ? request.answer : request.partial_answer;
    }
  }
  return plan;
}

}  // namespace modeld
