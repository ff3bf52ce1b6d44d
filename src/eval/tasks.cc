#include "eval/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "base/check.h"
#include "needles/quiz.h"
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

struct KindOfQuiz {
  std::string kind;
  Quiz quiz;
};

/// Quizzes whose sentences were planted, in text order.
Result<EvalText> locate(const Engine& engine, std::string name, PlantedText planted,
                        std::span<const KindOfQuiz> quizzes) {
  EvalText result;
  result.name = std::move(name);
  result.text = std::move(planted.text);
  MODELD_TRY(result.offsets, token_offsets(engine, result.text));
  std::map<std::string_view, const PlantedNeedle*> places;
  for (const PlantedNeedle& needle : planted.needles) places[needle.needle.sentence] = &needle;
  for (const auto& [kind, quiz] : quizzes) {
    EvalItem item{.kind = kind,
                  .question = quiz.question,
                  .answer_prefix = quiz.answer_prefix,
                  .answers = quiz.answers(),
                  .evidence = {}};
    for (const QuizSentence& sentence : quiz.sentences) {
      if (sentence.answer.empty()) continue;
      const PlantedNeedle& place = *places.at(sentence.text);
      const auto answer = result.text.rfind(sentence.answer, place.end - 1);
      MODELD_CHECK(answer != std::string::npos && answer >= place.begin);
      add_evidence(item, result, place.begin, place.end, answer);
    }
    result.items.push_back(std::move(item));
  }
  std::stable_sort(result.items.begin(), result.items.end(),
                   [](const EvalItem& a, const EvalItem& b) { return a.depth < b.depth; });
  return result;
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
  std::vector<KindOfQuiz> quizzes;
  for (const PlantedNeedle& one : planted.needles) {
    const Needle& needle = one.needle;
    quizzes.push_back({std::string(to_text(needle.kind)),
                       {.sentences = {{needle.sentence, needle.answer}},
                        .question = needle.question,
                        .answer_prefix = needle.answer_prefix}});
  }
  return locate(engine, std::move(name), std::move(planted), quizzes);
}

Result<EvalText> make_eval_text(const Engine& engine, std::string name, std::string_view text, std::int64_t tokens,
                                const PlantSpec& spec) {
  SeededRandom random(spec.seed);
  std::vector<KindOfQuiz> quizzes;
  std::vector<Needle> sentences;
  std::vector<double> depths;
  for (const std::string& kind : spec.kinds) {
    std::size_t number = 0;
    for (Quiz& quiz : make_quizzes(kind, spec.questions, spec.seed)) {
      // One in each part of the text; a quiz of one sentence in the parts in turn. A little away from the text's ends.
      const std::size_t parts = quiz.sentences.size() == 1 ? kBands : quiz.sentences.size();
      for (const QuizSentence& sentence : quiz.sentences) {
        const double in_part = (static_cast<double>(number++ % parts) + random.unit()) / static_cast<double>(parts);
        depths.push_back(0.01 + 0.98 * in_part);
        sentences.push_back(
            {.sentence = sentence.text, .question = {}, .answer = sentence.answer, .answer_prefix = {}});
      }
      quizzes.push_back({kind, std::move(quiz)});
    }
  }
  std::int64_t planted = 0;
  for (const Needle& needle : sentences) {
    MODELD_TRY(const std::vector<Token> sentence, engine.tokenize(needle.sentence, false, false));
    planted += static_cast<std::int64_t>(sentence.size()) + 1;  // and the space or line end behind it
  }
  MODELD_TRY(const std::string cut, cut_to_tokens(engine, text, std::max<std::int64_t>(1, tokens - planted)));
  return locate(engine, std::move(name), plant(cut, sentences, depths), quizzes);
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

double share_contained(const EvalItem& item, std::string_view text) {
  const auto right = std::count_if(item.answers.begin(), item.answers.end(),
                                   [&](const std::string& answer) { return answer_contains(text, answer); });
  return static_cast<double>(right) / static_cast<double>(item.answers.size());
}

double share_right(const EvalItem& item, std::string_view text) {
  if (item.answers.size() == 1) {
    // An answer may stand in quotes, as a literal does in source code.
    const std::size_t begin = text.find_first_not_of(" '\"`");
    return begin != std::string_view::npos && answer_begins(text.substr(begin), item.answers.front()) ? 1.0 : 0.0;
  }
  return share_contained(item, text);
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
