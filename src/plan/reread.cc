#include "plan/reread.h"

#include <algorithm>

#include "base/check.h"

namespace modeld {
namespace {

bool contains(std::span<const std::size_t> list, std::size_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

double number(double score) { return score > 0.0 ? score : 0.0; }

}  // namespace

std::optional<std::size_t> block_to_go_back_for(const RereadRequest& request, double margin) {
  MODELD_CHECK(request.fused.size() == request.written.size());
  std::optional<std::size_t> best;
  for (std::size_t b = 0; b < request.fused.size(); ++b) {
    if (contains(request.given_up, b)) continue;
    if (!best || number(request.fused[b]) > number(request.fused[*best])) best = b;
  }
  if (!best || contains(request.read, *best)) return std::nullopt;
  double most = 0.0;
  for (const std::size_t b : request.read) most = std::max(most, number(request.written[b]));
  const double drawn = number(request.written[*best]);
  if (!(drawn > 0.0) || drawn < margin * most) return std::nullopt;
  return best;
}

}  // namespace modeld
