#include "engine/llama/architectures.h"

#include <algorithm>
#include <array>

namespace modeld {
namespace {

using enum AttentionKind;

constexpr Architecture dense(std::string_view name, RopeStyle rope, UnrotatedLayers unrotated = UnrotatedLayers::none) {
  Architecture a;
  a.name = name;
  a.kind = causal;
  a.rope = rope;
  a.unrotated = unrotated;
  return a;
}
constexpr Architecture norm(std::string_view name) { return dense(name, RopeStyle::norm); }
constexpr Architecture neox(std::string_view name) { return dense(name, RopeStyle::neox); }
constexpr Architecture of_kind(std::string_view name, AttentionKind kind) {
  Architecture a;
  a.name = name;
  a.kind = kind;
  return a;
}
constexpr Architecture unmovable(std::string_view name, std::string_view reason) {
  Architecture a = of_kind(name, other);
  a.reason = reason;
  return a;
}

struct Windows {
  std::int32_t period = 0;
  bool base = false;
  bool scale = false;
  std::int32_t fallback = 0;
};
constexpr Architecture windowed(Architecture a, Windows w) {
  a.period = w.period;
  a.window_inherits_base = w.base;
  a.window_inherits_scale = w.scale;
  a.default_window = w.fallback;
  return a;
}

constexpr std::string_view kCompressed = "it compresses keys and values (MLA)";
constexpr std::string_view kNotRotary = "its positions are not rotary, so that keys cannot be moved";
constexpr std::string_view kSections = "its tokens have several positions each (M-RoPE)";
constexpr std::string_view kShared = "its layers share keys and values";
constexpr std::string_view kDiffusion = "it generates by diffusion, not token by token";
constexpr std::string_view kChunked = "it attends in chunks, not in windows";

constexpr std::array kArchitectures = {
    // consecutive pairs
    norm("llama"),
    norm("mistral3"),
    norm("internlm2"),
    norm("minicpm"),
    norm("xverse"),
    norm("command-r"),
    norm("olmo"),
    norm("deepseek"),
    norm("arcee"),
    norm("ernie4_5"),
    norm("ernie4_5-moe"),
    norm("chatglm"),
    norm("bailingmoe"),
    norm("maincoder"),
    norm("glm4"),
    dense("smollm3", RopeStyle::norm, UnrotatedLayers::every_fourth),
    windowed(dense("cohere2", RopeStyle::norm, UnrotatedLayers::global), {.period = 4, .base = true, .scale = true}),
    // halves
    neox("qwen"),
    neox("qwen2"),
    neox("qwen2moe"),
    neox("qwen3"),
    neox("qwen3moe"),
    neox("olmoe"),
    neox("phi2"),
    neox("phi3"),
    neox("phimoe"),
    neox("gemma"),
    neox("starcoder2"),
    neox("gptneox"),
    neox("stablelm"),
    neox("orion"),
    neox("nemotron"),
    neox("exaone"),
    neox("codeshell"),
    neox("falcon"),
    neox("dots1"),
    neox("bailingmoe2"),
    neox("seed_oss"),
    neox("apertus"),
    neox("grovemoe"),
    neox("minimax-m2"),
    neox("bitnet"),
    windowed(neox("gemma2"), {.period = 2, .base = true, .scale = true, .fallback = 4096}),
    windowed(neox("gemma3"), {.period = 6, .base = false, .scale = false}),
    windowed(neox("olmo2"), {.period = 4, .base = true, .scale = false}),
    windowed(neox("gpt-oss"), {.period = 2, .base = true, .scale = true}),
    windowed(neox("mellum"), {.period = 4, .base = true, .scale = true}),
    windowed(dense("exaone4", RopeStyle::neox, UnrotatedLayers::global), {.period = 4, .base = true, .scale = true}),
    // no keys to park
    of_kind("mamba", recurrent),
    of_kind("mamba2", recurrent),
    of_kind("rwkv6", recurrent),
    of_kind("rwkv6qwen2", recurrent),
    of_kind("rwkv7", recurrent),
    of_kind("arwkv7", recurrent),
    of_kind("jamba", hybrid),
    of_kind("falcon-h1", hybrid),
    of_kind("plamo2", hybrid),
    of_kind("granitehybrid", hybrid),
    of_kind("lfm2", hybrid),
    of_kind("lfm2moe", hybrid),
    of_kind("nemotron_h", hybrid),
    of_kind("nemotron_h_moe", hybrid),
    of_kind("qwen3next", hybrid),
    of_kind("kimi-linear", hybrid),
    of_kind("bailingmoe3", hybrid),
    of_kind("kimi-k3", hybrid),
    of_kind("glm5-next", hybrid),
    of_kind("qwen35", hybrid),
    of_kind("qwen35moe", hybrid),
    of_kind("qwen4exp", hybrid),
    of_kind("deepseek4", hybrid),
    of_kind("minimax-01", hybrid),
    of_kind("bert", encoder),
    of_kind("modern-bert", encoder),
    of_kind("nomic-bert", encoder),
    of_kind("nomic-bert-moe", encoder),
    of_kind("neo-bert", encoder),
    of_kind("jina-bert-v2", encoder),
    of_kind("jina-bert-v3", encoder),
    of_kind("eurobert", encoder),
    of_kind("gemma-embedding", encoder),
    of_kind("llama-embed", encoder),
    of_kind("t5", encoder),
    of_kind("t5encoder", encoder),
    of_kind("clip", encoder),
    of_kind("wavtokenizer-dec", encoder),
    unmovable("deepseek2", kCompressed),
    unmovable("deepseek2-ocr", kCompressed),
    unmovable("deepseek32", kCompressed),
    unmovable("glm-dsa", kCompressed),
    unmovable("minicpm3", kCompressed),
    unmovable("plm", kCompressed),
    unmovable("mistral4", kCompressed),
    unmovable("gpt2", kNotRotary),
    unmovable("gptj", kNotRotary),
    unmovable("mpt", kNotRotary),
    unmovable("bloom", kNotRotary),
    unmovable("jais", kNotRotary),
    unmovable("refact", kNotRotary),
    unmovable("starcoder", kNotRotary),
    unmovable("qwen2vl", kSections),
    unmovable("qwen3vl", kSections),
    unmovable("qwen3vlmoe", kSections),
    unmovable("paddleocr", kSections),
    unmovable("qwen3tts", kSections),
    unmovable("hunyuan_vl", kSections),
    unmovable("gemma3n", kShared),
    unmovable("gemma4", kShared),
    unmovable("gemma4-assistant", kShared),
    unmovable("dream", kDiffusion),
    unmovable("llada", kDiffusion),
    unmovable("llada-moe", kDiffusion),
    unmovable("rnd1", kDiffusion),
    unmovable("llama4", kChunked),
};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  const auto* const it = std::ranges::find(kArchitectures, name, &Architecture::name);
  return it == kArchitectures.end() ? nullptr : it;
}

}  // namespace modeld
