#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "eval/tasks.h"

namespace modeld {
namespace {

/// No pair takes fewer tokens than this in any tokenizer that knows words.
constexpr std::int64_t kPairTokens = 8;

}  // namespace

Result<EvalText> make_pairs_text(const Engine& engine, std::string name, PairStyle style, std::int64_t tokens,
                                 std::size_t questions, std::uint64_t seed) {
  const bool json = style == PairStyle::json;
  if (std::cmp_greater(tokens / kPairTokens, kPairsMax)) {
    return fail(ErrorCode::bad_argument,
                "There are not as many keys as so long a text of pairs needs; ask for a shorter one.",
                {{"tokens", tokens}, {"tokens_max", kPairTokens * static_cast<std::int64_t>(kPairsMax)}});
  }
  std::vector<Needle> pairs = make_pairs(style, static_cast<std::size_t>(tokens / kPairTokens), seed);
  std::string all = json ? "{\n" : "";
  std::vector<std::size_t> begins;
  begins.reserve(pairs.size());
  for (const Needle& pair : pairs) {
    begins.push_back(all.size());
    all += fmt::format("{}{}\n", pair.sentence, json ? "," : "");
  }
  EvalText result;
  result.name = std::move(name);
  MODELD_TRY(result.text, cut_to_tokens(engine, all, tokens));
  const auto whole =
      static_cast<std::size_t>(std::lower_bound(begins.begin(), begins.end(), result.text.size()) - begins.begin());
  if (json) result.text.replace(result.text.size() - 2, 2, "\n}\n");  // the last has no comma
  MODELD_TRY(result.offsets, token_offsets(engine, result.text));
  const std::size_t asked = std::min(questions, whole);
  for (std::size_t q = 0; q < asked; ++q) {
    const std::size_t i = (2 * q + 1) * whole / (2 * asked);  // the middle of the q-th part
    const std::size_t end = begins[i] + pairs[i].sentence.size();
    EvalItem item = item_of(pairs[i], std::string(value_name(style)));
    const std::size_t answer = result.text.rfind(pairs[i].answer, end);
    MODELD_CHECK(answer != std::string::npos && answer >= begins[i]);
    add_evidence(item, result, begins[i], end, answer);
    result.items.push_back(std::move(item));
  }
  return result;
}

}  // namespace modeld
