// The hot set is chosen as if nothing were resident, and compared with what is: keep, evict and fetch are the
// difference. So a session that was killed and resumed, with everything cold, comes to the same hot set as one that
// went on.
#include "plan/hot_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/check.h"

namespace modeld {
namespace {

/// Everything that is not wanted is equally unwanted; NaN too.
double wanted(const BlockView& block) { return block.score > 0.0 ? block.score : 0.0; }

class Planner {
 public:
  explicit Planner(const HotSetRequest& request) : request_(request), hot_(request.blocks.size(), false) {}

  Result<HotSetPlan> run() {
    MODELD_TRY_VOID(take_always());
    const bool class_order_allows_retrieval = take_pinned();
    if (class_order_allows_retrieval) take_retrieved();
    for (std::size_t i = 0; i < hot_.size(); ++i) {
      const bool resident = request_.blocks[i].residence == Residence::hot;
      if (hot_[i]) (resident ? plan_.keep : plan_.fetch).push_back(i);
      if (!hot_[i] && resident) plan_.evict.push_back(i);
    }
    plan_.hot_tokens = static_cast<std::int32_t>(used_);
    return plan_;
  }

 private:
  [[nodiscard]] std::int64_t size(std::size_t i) const { return request_.blocks[i].range.size(); }
  void take(std::size_t i) {
    hot_[i] = true;
    used_ += size(i);
  }
  [[nodiscard]] bool fits(std::size_t i) const { return used_ + size(i) <= request_.budget_tokens; }

  Status take_always() {
    for (std::size_t i = 0; i < hot_.size(); ++i) {
      if (request_.blocks[i].always) take(i);
    }
    if (used_ <= request_.budget_tokens) return {};
    return fail(
        ErrorCode::hot_too_small,
        fmt::format("Sinks and recent window take {} tokens, and the hot set has {} for blocks. Choose a larger "
                    "hot set or a smaller recent window.",
                    used_, request_.budget_tokens),
        {{"needed_tokens", used_}, {"budget_tokens", request_.budget_tokens}});
  }

  /// Candidates in the order in which they come in: class, score, recency, stream order.
  template <typename Wanted>
  [[nodiscard]] std::vector<std::size_t> candidates(Wanted&& accept, bool class_first) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < hot_.size(); ++i) {
      if (accept(i)) order.push_back(i);
    }
    const auto key = [&](std::size_t i) {
      const BlockView& block = request_.blocks[i];
      const auto cls = static_cast<int>(block.cls);
      return std::tuple(class_first ? cls : 0, -wanted(block), cls, ~block.last_use, i);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return order;
  }

  /// Takes pinned blocks in order up to the first one that finds no room: a smaller one behind it would overtake it.
  /// False if it was the budget that ended it and not the share: then nothing of a lower class may come in.
  bool take_pinned() {
    const auto order =
        candidates([&](std::size_t i) { return !hot_[i] && request_.blocks[i].cls != CacheClass::volatile_; }, true);
    const auto share = static_cast<std::int64_t>(request_.pinned_share * static_cast<double>(request_.budget_tokens));
    std::int64_t pinned = 0;
    for (std::size_t n = 0; n < order.size(); ++n) {
      const std::size_t i = order[n];
      const bool within_share = pinned + size(i) <= share;
      if (within_share && fits(i)) {
        take(i);
        pinned += size(i);
        continue;
      }
      plan_.pinned_cold.assign(order.begin() + static_cast<std::ptrdiff_t>(n), order.end());
      std::sort(plan_.pinned_cold.begin(), plan_.pinned_cold.end());
      return !within_share;
    }
    return true;
  }

  void take_retrieved() {
    const auto accept = [&](std::size_t i) {
      return (!hot_[i] || request_.blocks[i].always) && wanted(request_.blocks[i]) > 0.0;
    };
    for (const std::size_t i : candidates(accept, false)) {
      if (std::ssize(plan_.retrieved) >= request_.retrieved_max || (!hot_[i] && !fits(i))) break;
      if (!hot_[i]) take(i);
      plan_.retrieved.push_back(i);
    }
    std::erase_if(plan_.pinned_cold, [this](std::size_t i) { return hot_[i]; });
  }

  const HotSetRequest& request_;
  HotSetPlan plan_;
  std::vector<bool> hot_;
  std::int64_t used_ = 0;
};

}  // namespace

Result<HotSetPlan> plan_hot_set(const HotSetRequest& request) {
  const bool valid = request.pinned_share >= 0.0 && request.pinned_share <= 1.0;  // false for NaN
  if (!valid) {
    return fail(ErrorCode::bad_argument, "The share of pinned text must be between 0 and 1.");
  }
  StreamPos end;
  for (const BlockView& block : request.blocks) {
    MODELD_CHECK(end <= block.range.begin && !block.range.empty());
    end = block.range.end;
  }
  return Planner(request).run();
}

}  // namespace modeld
