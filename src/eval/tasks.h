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
#include "needles/word_lists.h"
#include "session/session.h"

namespace modeld {

/// A sentence that a question needs, in the text.
struct Evidence {
  /// Bytes of the sentence, and of the answer in it.
  std::size_t byte_begin = 0;
  std::size_t byte_end = 0;
  std::size_t answer_byte = 0;
  /// Its tokens, in the text's own.
  std::int64_t token_begin = 0;
  std::int64_t token_end = 0;
};

/// One question about a text.
struct EvalItem {
  /// The second half of its task's name: "single", "constant" …
  std::string kind;
  std::string question;
  /// Text that an answer may begin with, up to where the answer must follow after a space.
  std::string answer_prefix;
  /// All are wanted.
  std::vector<std::string> answers;
  /// In text order. None: the question is about the whole text.
  std::vector<Evidence> evidence;
  /// Where the first of it stands, 0 … 1; below 0 without evidence.
  double depth = -1.0;
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

/// A needle's question, of no place yet.
EvalItem item_of(const Needle& needle, std::string kind);
/// Adds what stands at [begin, end) to the item's evidence, behind all that is there. Sets the item's depth by the
/// first.
void add_evidence(EvalItem& item, const EvalText& text, std::size_t begin, std::size_t end, std::size_t answer);

/// What is planted into a text.
struct PlantSpec {
  /// Of quiz_kinds().
  std::vector<std::string> kinds = {"single", "lookalike", "paraphrase"};
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

enum class WordStyle : std::uint8_t { common, frequent };
/// A list of words alone and the question which come most often (word_lists.h), as long as fits `tokens`.
/// Errors: bad_argument for fewer tokens than the most common words take, or more than there are words for.
Result<EvalText> make_words_text(const Engine& engine, std::string name, WordStyle style, std::int64_t tokens,
                                 std::uint64_t seed);

/// Repeated filler with one pass key at position `index` of `count`, evenly spread over the text.
Result<EvalText> make_passkey_text(const Engine& engine, std::int64_t tokens, std::size_t index, std::size_t count,
                                   std::uint64_t seed);

/// Repeated or other filler with needles at depths, located. REQUIRES one depth a needle.
Result<EvalText> locate(const Engine& engine, std::string name, PlantedText planted);

/// About `tokens` tokens around an item's evidence in all, each part beginning and ending at sentence or line ends: the
/// passages alone. Empty without evidence.
std::string passages_around(const EvalText& text, const EvalItem& item, std::int64_t tokens);

/// The share of an item's answers that stand anywhere in `text`.
double share_contained(const EvalItem& item, std::string_view text);
/// The share of an item's answers that `text` gives: one must come first (in quotes, perhaps), several may come in any
/// order and with words between.
double share_right(const EvalItem& item, std::string_view text);

/// The item's question with its forced answer prefix, with room for the answers.
Result<Question> forced_question(const Engine& engine, const EvalItem& item);
/// The item's question to be answered freely.
Question free_question(const EvalItem& item);

/// Blocks of a session's stream that hold the item's sentences, and those that hold its answers, one a piece of
/// evidence. The session's stream must be a frame and then the text.
struct TrueBlocks {
  std::vector<StreamRange> sentences;
  std::vector<StreamRange> answers;
};
/// Errors: internal if the stream does not hold the text.
Result<std::vector<TrueBlocks>> true_blocks(const Engine& engine, const Session& session, const EvalText& text);

}  // namespace modeld
