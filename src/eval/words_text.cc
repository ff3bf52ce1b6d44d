#include <algorithm>
#include <utility>

#include "eval/tasks.h"

namespace modeld {
namespace {

/// The largest size in [least, most] whose text takes at most `tokens`; `least` if none does.
template <typename Make>
Result<std::size_t> largest_that_fits(const Engine& engine, std::int64_t tokens, std::size_t least, std::size_t most,
                                      const Make& make) {
  while (least < most) {
    const std::size_t middle = least + (most - least + 1) / 2;
    MODELD_TRY(const std::vector<Token> taken, engine.tokenize(make(middle).text, false, false));
    if (std::cmp_less_equal(taken.size(), tokens)) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return least;
}

}  // namespace

Result<EvalText> make_words_text(const Engine& engine, std::string name, WordStyle style, std::int64_t tokens,
                                 std::uint64_t seed) {
  const bool common = style == WordStyle::common;
  const auto make = [&](std::size_t size) {
    return common ? make_common_words(size, seed) : make_frequent_words(size, seed);
  };
  // No word takes less than one token; a line of the numbered list takes at least four, and each word three lines.
  const auto words = static_cast<std::size_t>(std::max<std::int64_t>(tokens, 0));
  const std::size_t least = common ? 0 : kCodedWordsMin;
  const std::size_t most = common ? words / (4 * kOtherTimes) : 2 * words;
  if (common && most > kOtherWordsMax) {
    return fail(ErrorCode::bad_argument, "There are not as many words as so long a list needs; ask for a shorter one.",
                {{"tokens", tokens}, {"tokens_max", static_cast<std::int64_t>(kOtherWordsMax * 4 * kOtherTimes)}});
  }
  MODELD_TRY(const std::size_t size, largest_that_fits(engine, tokens, least, std::max(least, most), make));
  WordList list = make(size);
  EvalText result;
  result.name = std::move(name);
  result.text = std::move(list.text);
  MODELD_TRY(result.offsets, token_offsets(engine, result.text));
  if (std::cmp_greater(result.offsets.tokens.size(), tokens)) {
    return fail(ErrorCode::bad_argument, "The most common words alone make a longer text; ask for more tokens.",
                {{"tokens", tokens}, {"tokens_min", static_cast<std::int64_t>(result.offsets.tokens.size())}});
  }
  result.items.push_back({.kind = "words",
                          .question = std::move(list.question),
                          .answer_prefix = std::move(list.answer_prefix),
                          .answers = std::move(list.answers),
                          .evidence = {}});
  return result;
}

}  // namespace modeld
