// The texts that are asked about: real text with planted facts of every kind, and the classic pass key in repeated
// filler.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "eval/corpus.h"
#include "needles/needles.h"
#include "needles/pairs.h"
#include "session/session.h"

namespace modeld {

/// One question about a text.
struct EvalItem {
  /// The second half of its task's name: "single", "constant" …
  std::string kind;
  Needle needle;
  /// Tokens of the planted sentence in the text's own tokens.
  std::int64_t token_begin = 0;
  std::int64_t token_end = 0;
  /// Bytes of the sentence in the text, and of the answer in it.
  std::size_t byte_begin = 0;
  std::size_t byte_end = 0;
  std::size_t answer_byte = 0;
  /// Where it stands, 0 … 1.
  double depth = 0.0;
};

struct EvalText {
  /// "prose", "code", "passkey-3": the first half of a task's name ("prose.single").
  std::string name;
  std::string text;
  TokenOffsets offsets;
  std::vector<EvalItem> items;  // in text order
};

/// At most `count` of the items, evenly spread.
template <typename Item>
std::vector<Item> spread(const std::vector<Item>& items, std::size_t count) {
  if (items.size() <= count) return items;
  std::vector<Item> kept;
  kept.reserve(count);
  for (std::size_t i = 0; i < count; ++i) kept.push_back(items[i * items.size() / count]);
  return kept;
}

/// Says where an item's sentence and answer stand in the text, in bytes, tokens and depth.
void set_place(EvalItem& item, const EvalText& text, std::size_t begin, std::size_t end, std::size_t answer);

/// What is planted into a text.
struct PlantSpec {
  std::vector<NeedleKind> kinds = {NeedleKind::single, NeedleKind::lookalike, NeedleKind::paraphrase};
  /// Facts of each kind (fewer where there are not as many).
  std::size_t questions = 52;
  std::uint64_t seed = 1;
};
/// Plants facts at four depth bands in turn, seeded, into `text` so that the whole takes about `tokens` tokens.
/// Errors: bad_argument for a text that is too short.
Result<EvalText> make_eval_text(const Engine& engine, std::string name, std::string_view text, std::int64_t tokens,
                                const PlantSpec& spec);

/// Python source files with what they state: of the files under `root` those that state most for their size, in a
/// seeded order, each with its name in a comment line before it, cut to about `tokens` tokens; `questions` facts of
/// each kind (code_facts.h), spread over the text. Errors: text_empty where there are none.
Result<EvalText> make_code_text(const Engine& engine, std::string name, const std::filesystem::path& root,
                                std::int64_t tokens, std::size_t questions, std::uint64_t seed);

/// Keys and values alone ("json.uuid", "lines.number"), about `tokens` tokens of them; `questions`, evenly spread, are
/// asked for.
/// Errors: bad_argument for more tokens than there are keys for.
Result<EvalText> make_pairs_text(const Engine& engine, std::string name, PairStyle style, std::int64_t tokens,
                                 std::size_t questions, std::uint64_t seed);

/// Repeated filler with one pass key at position `index` of `count`, evenly spread over the text.
Result<EvalText> make_passkey_text(const Engine& engine, std::int64_t tokens, std::size_t index, std::size_t count,
                                   std::uint64_t seed);

/// Repeated or other filler with needles at depths, located. REQUIRES one depth a needle.
Result<EvalText> locate(const Engine& engine, std::string name, PlantedText planted);

/// About `tokens` tokens around an item's sentence, beginning and ending at sentence or line ends: the passage alone.
std::string passage_around(const EvalText& text, const EvalItem& item, std::int64_t tokens);

/// The item's question with its forced answer prefix, with room for the answer and one token more.
Result<Question> forced_question(const Engine& engine, const EvalItem& item);
/// The item's question to be answered freely.
Question free_question(const EvalItem& item);

/// Blocks of a session's stream that hold the item's sentence, and the one that holds its answer. The session's stream
/// must be a frame and then the text.
struct TrueBlocks {
  std::vector<StreamRange> sentence;
  StreamRange answer;
};
/// Errors: internal if the stream does not hold the text.
Result<std::vector<TrueBlocks>> true_blocks(const Engine& engine, const Session& session, const EvalText& text);

}  // namespace modeld
