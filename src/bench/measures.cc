#include "bench/measures.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace modeld {

BenchRow at_least(std::string name, double value, double bound, std::string unit) {
  return {std::move(name), value, std::move(unit), fmt::format("at least {:.2f}", bound), value >= bound};
}

BenchRow at_most(std::string name, double value, double bound, std::string unit) {
  return {std::move(name), value, std::move(unit), fmt::format("at most {:.2f}", bound), value <= bound};
}

std::string_view BenchJob::slice(std::int64_t from, std::int64_t to) const {
  const std::size_t begin = offsets.bytes[static_cast<std::size_t>(from)];
  return std::string_view(text).substr(begin, offsets.bytes[static_cast<std::size_t>(to)] - begin);
}

std::int64_t BenchJob::store_bytes(std::int64_t tokens) const {
  if (options.cold_bytes > 0) return options.cold_bytes;
  // KV, and half as much again for index, tokens and headers.
  return tokens * engine.geometry().kv_bytes_per_token(options.kv_type) * 3 / 2 + (std::int64_t{64} << 20);
}

SessionSettings BenchJob::settings() const {
  SessionSettings result;
  result.context = ContextMode::focus;
  result.hot_tokens = options.hot_tokens;
  result.kv_type = options.kv_type;
  result.answer_tokens = 96;
  result.threads = options.threads;
  return result;
}

Result<std::unique_ptr<Session>> BenchJob::session(Engine& with, ColdStore& store, const SessionSettings& settings,
                                                   std::int64_t tokens) const {
  MODELD_TRY(std::unique_ptr<Session> made, Session::create(with, store, calibration, settings));
  const std::array parts = {TextPart{"text", std::string(slice(0, tokens)), SegmentKind::user}};
  MODELD_TRY_VOID(made->append(parts, cancel));
  return made;
}

double median(std::vector<double> values) {
  MODELD_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Timeline::add(double tokens, double seconds) {
  MODELD_CHECK(points_.empty() || tokens >= points_.back().first);
  points_.emplace_back(tokens, seconds);
}

double Timeline::at(double tokens) const {
  MODELD_CHECK(points_.size() >= 2);
  auto after = std::lower_bound(points_.begin(), points_.end(), tokens,
                                [](const std::pair<double, double>& p, double t) { return p.first < t; });
  after = std::clamp(after, points_.begin() + 1, points_.end() - 1);
  const auto before = after - 1;
  const double span = after->first - before->first;
  if (span <= 0.0) return after->second;
  return before->second + (after->second - before->second) * (tokens - before->first) / span;
}

double Timeline::speed(double from, double slice, int count) const {
  double sum = 0.0;
  for (int i = 0; i < count; ++i) {
    const double begin = from + slice * i;
    sum += slice / (at(begin + slice) - at(begin));
  }
  return sum / count;
}

}  // namespace modeld
