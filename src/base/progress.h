// Progress of long work, as events. The worker reports; who shows it (a terminal bar, SSE, nobody) decides the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace modeld {

struct Progress {
  /// What is being done, a short noun phrase: "reading the text", "calibrating heads". Valid during the call only.
  std::string_view stage;
  std::uint64_t done = 0;
  /// 0 when not known.
  std::uint64_t total = 0;
  /// Of what `done` counts: "tokens", "questions". Valid during the call only.
  std::string_view unit;
};

/// Called on the worker's thread, often: must be quick. An empty function means nobody listens.
using ProgressSink = std::function<void(const Progress&)>;

inline void report(const ProgressSink& sink, std::string_view stage, std::uint64_t done, std::uint64_t total,
                   std::string_view unit) {
  if (sink) sink(Progress{stage, done, total, unit});
}

}  // namespace modeld
