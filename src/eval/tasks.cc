#include "eval/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "needles/random.h"

namespace modeld {
namespace {

/// The pass key's two sentences take about this many tokens; the filler is cut shorter by as much.
constexpr std::int64_t kPasskeyTokens = 32;
constexpr std::size_t kBands = 4;

/// Sentence or line ends are good places to begin a passage.
std::size_t good_begin(std::string_view text, std::size_t from, std::size_t limit) {
  for (std::size_t at = from; at < limit; ++at)
    if (at == 0 || text[at - 1] == '\n' || (text[at - 1] == ' ' && at > 1 && text[at - 2] == '.')) return at;
  return limit;
}

struct Bytes {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// About `tokens` tokens around a sentence.
Bytes passage_bytes(const EvalText& text, const Evidence& evidence, std::int64_t tokens) {
  const std::int64_t wanted = std::max(tokens, evidence.token_end - evidence.token_begin);
  const std::int64_t spare = wanted - (evidence.token_end - evidence.token_begin);
  const auto last = static_cast<std::int64_t>(text.offsets.tokens.size());
  std::int64_t begin = std::max<std::int64_t>(0, evidence.token_begin - spare / 2);
  const std::int64_t end = std::min(last, begin + wanted);
  begin = std::max<std::int64_t>(0, std::min(begin, end - wanted));
  const std::size_t from =
      good_begin(text.text, text.offsets.bytes[static_cast<std::size_t>(begin)], evidence.byte_begin);
  std::size_t to = text.offsets.bytes[static_cast<std::size_t>(end)];
  while (to > evidence.byte_end && text.text[to - 1] != '\n' && text.text[to - 1] != '.') --to;
  return {from, std::max(to, evidence.byte_end)};
}

}  // namespace

EvalItem item_of(const Needle& needle, std::string kind) {
  EvalItem item;
  item.kind = std::move(kind);
  item.question = needle.question;
  item.answer_prefix = needle.answer_prefix;
  item.answers = {needle.answer};
  return item;
}

void add_evidence(EvalItem& item, const EvalText& text, std::size_t begin, std::size_t end, std::size_t answer) {
  MODELD_CHECK(item.evidence.empty() || item.evidence.back().byte_end <= begin);
  if (item.evidence.empty()) item.depth = static_cast<double>(begin) / static_cast<double>(text.text.size());
  item.evidence.push_back({begin, end, answer, token_at(text.offsets, begin), token_at(text.offsets, end - 1) + 1});
}

Result<EvalText> locate(const Engine& engine, std::string name, PlantedText planted) {
  EvalText result;
  result.name = std::move(name);
  result.text = std::move(planted.text);
  MODELD_TRY(result.offsets, token_offsets(engine, result.text));
  for (const PlantedNeedle& planted_one : planted.needles) {
    const Needle& needle = planted_one.needle;
    const auto answer = result.text.rfind(needle.answer, planted_one.end - 1);
    MODELD_CHECK(answer != std::string::npos && answer >= planted_one.begin);
    EvalItem item = item_of(needle, std::string(to_text(needle.kind)));
    add_evidence(item, result, planted_one.begin, planted_one.end, answer);
    result.items.push_back(std::move(item));
  }
  return result;
}

Result<EvalText> make_eval_text(const Engine& engine, std::string name, std::string_view text, std::int64_t tokens,
                                const PlantSpec& spec) {
  SeededRandom random(spec.seed);
  std::vector<Needle> needles;
  std::vector<double> depths;
  for (const NeedleKind kind : spec.kinds) {
    const std::size_t count = std::min(spec.questions, needles_max(kind));
    std::vector<Needle> made = make_needles(kind, count, spec.seed);
    for (std::size_t i = 0; i < count; ++i) {
      needles.push_back(std::move(made[i]));
      // Bands in turn; within a band anywhere, a little away from the text's ends.
      const double in_band = (static_cast<double>(i % kBands) + random.unit()) / static_cast<double>(kBands);
      depths.push_back(0.01 + 0.98 * in_band);
    }
  }
  std::int64_t planted = 0;
  for (const Needle& needle : needles) {
    MODELD_TRY(const std::vector<Token> sentence, engine.tokenize(needle.sentence, false, false));
    planted += static_cast<std::int64_t>(sentence.size()) + 1;  // and the space or line end behind it
  }
  MODELD_TRY(const std::string cut, cut_to_tokens(engine, text, std::max<std::int64_t>(1, tokens - planted)));
  return locate(engine, std::move(name), plant(cut, needles, depths));
}

Result<EvalText> make_passkey_text(const Engine& engine, std::int64_t tokens, std::size_t index, std::size_t count,
                                   std::uint64_t seed) {
  MODELD_CHECK(index < count);
  const std::string filler = filler_repeated(static_cast<std::size_t>(tokens) * 6);
  MODELD_TRY(const std::string cut, cut_to_tokens(engine, filler, std::max<std::int64_t>(1, tokens - kPasskeyTokens)));
  const std::vector<Needle> needles = make_needles(NeedleKind::passkey, 1, seed + index);
  const std::array depths = {(static_cast<double>(index) + 0.5) / static_cast<double>(count)};
  return locate(engine, fmt::format("passkey-{}", index + 1), plant(cut, needles, depths));
}

std::string passages_around(const EvalText& text, const EvalItem& item, std::int64_t tokens) {
  std::string passages;
  std::size_t done = 0;
  const std::int64_t share = tokens / std::max<std::int64_t>(1, static_cast<std::int64_t>(item.evidence.size()));
  for (const Evidence& evidence : item.evidence) {
    const auto [from, to] = passage_bytes(text, evidence, share);
    const std::size_t begin = std::max(from, done);
    if (begin >= to) continue;
    if (!passages.empty() && begin > done) passages += '\n';
    passages += std::string_view(text.text).substr(begin, to - begin);
    done = to;
  }
  return passages;
}

double share_right(const EvalItem& item, std::string_view text) {
  if (item.answers.size() == 1) {
    // An answer may stand in quotes, as a literal does in source code.
    const std::size_t begin = text.find_first_not_of(" '\"`");
    return begin != std::string_view::npos && answer_begins(text.substr(begin), item.answers.front()) ? 1.0 : 0.0;
  }
  const auto right = std::count_if(item.answers.begin(), item.answers.end(),
                                   [&](const std::string& answer) { return answer_contains(text, answer); });
  return static_cast<double>(right) / static_cast<double>(item.answers.size());
}

Result<Question> forced_question(const Engine& engine, const EvalItem& item) {
  Question question;
  question.text = item.question;
  question.answer_prefix = item.answer_prefix;
  question.answer_tokens_max = 0;
  for (const std::string& answer : item.answers) {
    MODELD_TRY(const std::vector<Token> tokens, engine.tokenize(" " + answer, false, false));
    // A comma, quotes or "and" beside it.
    question.answer_tokens_max += static_cast<std::int32_t>(tokens.size()) + 2;
  }
  return question;
}

Question free_question(const EvalItem& item) {
  Question question;
  question.text = item.question;
  question.answer_tokens_max = 32 * static_cast<std::int32_t>(item.answers.size());
  return question;
}

Result<std::vector<TrueBlocks>> true_blocks(const Engine& engine, const Session& session, const EvalText& text) {
  // By bytes, not by tokens: a session may tokenise a long text piece by piece.
  std::string decoded;
  std::vector<std::size_t> begins;
  for (const Token token : session.stream()) {
    begins.push_back(decoded.size());
    decoded += engine.piece(token);
  }
  const auto shift = decoded.find(text.text);
  if (shift == std::string::npos) return fail(ErrorCode::internal, "The session's stream does not hold the text.");
  const auto position = [&](std::size_t byte) {
    const auto after = std::upper_bound(begins.begin(), begins.end(), shift + byte);
    return StreamPos(after - begins.begin() - 1);
  };
  const std::vector<StreamRange> blocks = session.blocks();
  std::vector<TrueBlocks> result;
  for (const EvalItem& item : text.items) {
    TrueBlocks truth;
    for (const Evidence& evidence : item.evidence) {
      const StreamRange sentence{position(evidence.byte_begin), position(evidence.byte_end - 1) + 1};
      const StreamPos answer = position(evidence.answer_byte);
      for (const StreamRange& block : blocks) {
        if (block.overlaps(sentence)) truth.sentences.push_back(block);
        if (block.contains(answer)) truth.answers.push_back(block);
      }
    }
    result.push_back(std::move(truth));
  }
  return result;
}

}  // namespace modeld
