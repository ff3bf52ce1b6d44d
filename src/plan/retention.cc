#include "plan/retention.h"

#include <algorithm>
#include <tuple>

namespace modeld {
namespace {

/// The sort key of "least valuable first". Classes are numbered from the most precious one, hence the sign.
auto worth(const RetainedBlock& block, std::size_t index) {
  return std::tuple(-static_cast<int>(block.cls), block.fetches, block.last_use, index);
}

}  // namespace

std::vector<std::size_t> choose_drops(std::span<const RetainedBlock> blocks, std::int64_t needed_bytes) {
  if (needed_bytes <= 0) return {};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!blocks[i].held && blocks[i].payload_bytes > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return worth(blocks[a], a) < worth(blocks[b], b); });
  std::int64_t freed = 0;
  for (std::size_t n = 0; n < order.size(); ++n) {
    freed += blocks[order[n]].payload_bytes;
    if (freed < needed_bytes) continue;
    order.resize(n + 1);
    return order;
  }
  return {};
}

}  // namespace modeld
