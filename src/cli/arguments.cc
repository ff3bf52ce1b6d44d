#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "cli/commands.h"

namespace modeld {
namespace {

CLI::Validator unnamed(std::function<std::string(std::string&)> check) { return {std::move(check), ""}; }

template <typename Number>
bool parses(const std::string& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  return unnamed([low, high](std::string& text) -> std::string {
    std::int64_t value = 0;
    if (parses(text, value) && value >= low && value <= high) return "";
    return fmt::format("{} is not a whole number between {} and {}.", text, low, high);
  });
}

CLI::Validator whole_number_of_at_least(std::int64_t low) {
  return whole_number(low, std::numeric_limits<std::int32_t>::max());
}

CLI::Validator number_between(double low, double high) {
  return unnamed([low, high](std::string& text) -> std::string {
    double value = 0.0;
    if (parses(text, value) && value >= low && value <= high) return "";
    return fmt::format("{} is not a number between {} and {}.", text, low, high);
  });
}

CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::int64_t& value,
                       const std::string& description) {
  return command
      .add_option_function<std::uint64_t>(
          name, [&value](const std::uint64_t& bytes) { value = static_cast<std::int64_t>(bytes); }, description)
      ->transform(CLI::AsSizeValue(false).description(""))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 60).description(""))
      ->type_name("BYTES");
}

void add_model_flag(CLI::App& command, ModelChoice& choice) {
  command.add_option("--model", choice.model, "The model, a GGUF file")->required()->type_name("FILE");
}

void add_memory_flags(CLI::App& command, ModelChoice& choice) {
  command
      .add_option_function<std::int32_t>(
          "--hot", [&choice](const std::int32_t& tokens) { choice.hot_tokens = tokens; },
          "Tokens whose KV stays on the device (default: the trained window, or what memory allows)")
      ->check(whole_number_of_at_least(1))
      ->type_name("TOKENS");
  const std::map<std::string, KvType> types = {{"f16", KvType::f16}, {"q8_0", KvType::q8_0}, {"q4_0", KvType::q4_0}};
  add_choice(command, "--kv-type", choice.kv_type, types, "Number format of the KV: f16, q8_0 or q4_0 (default f16)")
      ->type_name("TYPE");
  const std::map<std::string, std::optional<KvType>> cold = {{"q8_0", KvType::q8_0}, {"q4_0", KvType::q4_0}};
  add_choice(command, "--cold-type", choice.cold_type, cold,
             "Number format of parked KV where that on the device is f16: q8_0 takes half the memory and disk, q4_0 a "
             "quarter and reads worse (default: as --kv-type)")
      ->type_name("TYPE");
  add_bytes(command, "--host-budget", choice.host_budget,
            "Host memory for parked KV, its index and the tokens, e.g. 800M or 4G (default: a quarter of the host's "
            "memory)");
}

void add_embedder_flag(CLI::App& command, ModelChoice& choice) {
  command
      .add_option("--embedder", choice.embedder,
                  "A sentence embedder, a GGUF file: passages are then found by their meaning, too")
      ->type_name("FILE");
}

void add_follow_flag(CLI::App& command, std::int32_t& follow) {
  command
      .add_option("--follow", follow,
                  "Also read up to N passages that those found lead to by a word that few hold (default 4; 0: none)")
      ->check(whole_number(0, 64))
      ->type_name("N");
}

void add_threads_flag(CLI::App& command, ModelChoice& choice) {
  command.add_option("--threads", choice.threads, "Threads that compute (default: chosen for this machine)")
      ->check(whole_number(1, 1024))
      ->type_name("N");
}

void add_seed_flag(CLI::App& command, std::uint64_t& seed) {
  command.add_option("--seed", seed, fmt::format("Seed of everything that is drawn (default {})", seed))
      ->check(unnamed([](std::string& text) -> std::string {
        std::uint64_t value = 0;
        return parses(text, value) ? "" : fmt::format("{} is not a whole number of at least 0 and 64 bits.", text);
      }))
      ->type_name("N");
}

}  // namespace modeld
