#include <fmt/format.h>

#include <map>
#include <string>

#include "cli/commands.h"

namespace modeld {
namespace {

std::map<std::string, KvType> kv_type_names() {
  std::map<std::string, KvType> names;
  for (const KvType type : kKvTypes) names.emplace(to_text(type), type);
  return names;
}

}  // namespace

void add_model_flag(CLI::App& command, ModelChoice& choice) {
  command.add_option("--model", choice.model, "The model, a GGUF file")->required()->type_name("FILE");
}

void add_memory_flags(CLI::App& command, ModelChoice& choice) {
  command
      .add_option_function<std::int32_t>(
          "--hot", [&choice](const std::int32_t& tokens) { choice.hot_tokens = tokens; },
          "Tokens whose KV stays on the device (default: the trained window, or what memory allows)")
      ->check(CLI::PositiveNumber)
      ->type_name("TOKENS");
  command.add_option("--kv-type", choice.kv_type, "Number format of the KV: f16, q8_0 or q4_0 (default f16)")
      ->transform(CLI::CheckedTransformer(kv_type_names()).description(""))
      ->type_name("TYPE");
  command
      .add_option_function<std::uint64_t>(
          "--host-budget",
          [&choice](const std::uint64_t& bytes) { choice.host_budget = static_cast<std::int64_t>(bytes); },
          "Host memory for parked KV, its index and the tokens, e.g. 800M or 4G (default: a quarter of the host's "
          "memory)")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 60).description(""))
      ->type_name("BYTES");
}

void add_threads_flag(CLI::App& command, ModelChoice& choice) {
  command.add_option("--threads", choice.threads, "Threads that compute (default: chosen for this machine)")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
}

void add_seed_flag(CLI::App& command, std::uint64_t& seed) {
  command.add_option("--seed", seed, fmt::format("Seed of everything that is drawn (default {})", seed))
      ->type_name("N");
}

}  // namespace modeld
