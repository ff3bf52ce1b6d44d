#include <map>
#include <memory>

#include "conformance/engine_case.h"
#include "engine/scripted/open.h"

namespace modeld {
namespace {

Engine* kept(const std::string& name, const ScriptedOptions& options) {
  static std::map<std::string, std::unique_ptr<Engine>> engines;
  auto& engine = engines[name];
  if (!engine) engine = open_scripted(options);
  return engine.get();
}

EngineCase make(std::string name, KvType type, double bound, const ScriptedOptions& options) {
  EngineCase c;
  c.kv_type = type;
  c.bound = bound;
  c.computing_bound = 1e-6;
  c.engine = [name, options] { return kept(name, options); };
  c.slow_engine = [name, options] {
    ScriptedOptions slow = options;
    slow.token_time = std::chrono::milliseconds(2);
    return kept(name + "_slow", slow);
  };
  // Layer 1's keys come from attention over keys that were rounded at other places.
  c.vector_bound = type == KvType::q4_0 ? 0.2 : 2e-2;
  c.name = std::move(name);
  return c;
}

}  // namespace

const std::vector<EngineCase>& rule_cases() {
  static const std::vector<EngineCase> cases = {
      make("neox_f16", KvType::f16, 1e-2, {.rope = RopeStyle::neox}),
      make("norm_f16", KvType::f16, 1e-2, {.rope = RopeStyle::norm, .adds_bos = true}),
      make("neox_q8_0", KvType::q8_0, 2e-2, {.rope = RopeStyle::neox}),
      make("neox_q4_0", KvType::q4_0, 2e-1, {.rope = RopeStyle::neox}),
      make("windowed_f16", KvType::f16, 1e-2, {.windows = {64, 0}}),
  };
  return cases;
}

const std::vector<EngineCase>& kv_cases() { return rule_cases(); }

}  // namespace modeld
