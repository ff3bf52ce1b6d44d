#include "stream/manifest.h"

#include <fmt/format.h>

#include <bit>

namespace modeld {
namespace {

// +0.0 and -0.0 are equal scales, so they must give equal digests.
std::uint64_t scale_bits(float scale) { return std::bit_cast<std::uint32_t>(scale + 0.0F); }

std::string adapters_text(const Identity& identity) {
  std::string text;
  for (const auto& [name, scale] : identity.adapters) {
    text += fmt::format("{}{}×{}", text.empty() ? "" : " + ", name, scale);
  }
  return text;
}

/// Long digests are shown by their beginnings where these tell them apart.
std::string sentence(std::string_view field, std::string_view stored, std::string_view current) {
  constexpr std::size_t kShown = 12;
  constexpr std::size_t kLong = 32;
  const bool shorten = stored.size() >= kLong && current.size() >= kLong &&
                       stored.find(' ') == std::string_view::npos && current.find(' ') == std::string_view::npos &&
                       stored.substr(0, kShown) != current.substr(0, kShown);
  const auto shown = [shorten](std::string_view value) -> std::string {
    if (value.empty()) return "none";
    return shorten ? fmt::format("{}…", value.substr(0, kShown)) : std::string(value);
  };
  return fmt::format("The KV was made with {} {}, this is {}.", field, shown(stored), shown(current));
}

}  // namespace

Identity Identity::of_payloads() const {
  Identity identity = *this;
  identity.calibration.clear();
  return identity;
}

Digest128 Identity::digest() const {
  Hasher hasher;
  hasher.text("identity").text(engine).text(model).text(tokenizer).text(chat_template).number(adds_bos ? 1 : 0);
  hasher.number(adapters.size());
  for (const auto& [name, scale] : adapters) hasher.text(name).number(scale_bits(scale));
  return hasher.text(kv_type).text(rope).text(calibration).finish();
}

std::string difference(const Identity& stored, const Identity& current) {
  struct Field {
    std::string_view name;
    const std::string Identity::* value;
  };
  constexpr Field kBeforeBos[] = {{"engine", &Identity::engine},
                                  {"model", &Identity::model},
                                  {"tokenizer", &Identity::tokenizer},
                                  {"chat template", &Identity::chat_template}};
  constexpr Field kAfterAdapters[] = {
      {"KV type", &Identity::kv_type}, {"RoPE", &Identity::rope}, {"calibration", &Identity::calibration}};
  for (const auto& [name, value] : kBeforeBos) {
    if (stored.*value != current.*value) return sentence(name, stored.*value, current.*value);
  }
  if (stored.adds_bos != current.adds_bos) {
    return sentence("BOS token", stored.adds_bos ? "added" : "not added", current.adds_bos ? "added" : "not added");
  }
  if (stored.adapters != current.adapters) {
    return sentence("adapters", adapters_text(stored), adapters_text(current));
  }
  for (const auto& [name, value] : kAfterAdapters) {
    if (stored.*value != current.*value) return sentence(name, stored.*value, current.*value);
  }
  return {};
}

Digest128 Manifest::digest() const {
  Hasher hasher;
  hasher.text("manifest").digest(identity.digest()).number(segments.size());
  for (const Segment& segment : segments) {
    hasher.number(static_cast<std::uint64_t>(segment.kind)).number(static_cast<std::uint64_t>(segment.cls));
    hasher.number(static_cast<std::uint64_t>(segment.tokens.begin.get()));
    hasher.number(static_cast<std::uint64_t>(segment.tokens.end.get())).digest(segment.hash);
  }
  return hasher.finish();
}

Digest128 hash_tokens(std::span<const Token> tokens) { return Hasher().values(tokens).finish(); }

std::string_view to_text(KvOrigin origin) { return origin == KvOrigin::isolated ? "isolated" : "streamed"; }

BlockKey isolated_key(const Digest128& identity, const Digest128& sinks, std::span<const Token> run_up,
                      std::span<const Token> tokens) {
  return Hasher().text("isolated").digest(identity).digest(sinks).values(run_up).values(tokens).finish();
}

BlockKey streamed_key(const Digest128& identity, const Digest128& sinks, std::int32_t window_tokens,
                      const BlockKey& chain, std::span<const Token> tokens) {
  Hasher hasher;
  hasher.text("streamed").digest(identity).digest(sinks).number(static_cast<std::uint64_t>(window_tokens));
  return hasher.digest(chain).values(tokens).finish();
}

}  // namespace modeld
