#include "stream/block.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace modeld {
namespace {

using enum Boundary;

// ── texts to cut ────────────────────────────────────────────────────────────────────────────────────────────────────

struct Text {
  std::vector<std::string> pieces;
  std::vector<Token> tokens;
  [[nodiscard]] std::size_t size() const { return tokens.size(); }
  void add(const std::string& piece) {
    pieces.push_back(piece);
    std::uint32_t id = 2166136261U;  // FNV-1a, so that the texts are the same everywhere
    for (const char c : piece) id = (id ^ static_cast<unsigned char>(c)) * 16777619U;
    tokens.push_back(static_cast<Token>(id % 50000U));
  }
  [[nodiscard]] std::vector<Boundary> pauses() const {
    const std::vector<std::string_view> views(pieces.begin(), pieces.end());
    return boundaries(views);
  }
  [[nodiscard]] std::vector<StreamRange> cut(const BlockLimits& limits = {}) const {
    return cut_blocks(tokens, pauses(), limits);
  }
  /// What the blocks say: by this they are found again, wherever they stand.
  [[nodiscard]] std::multiset<std::vector<Token>> contents() const {
    std::multiset<std::vector<Token>> contents;
    for (const StreamRange& range : cut()) {
      contents.emplace(tokens.begin() + range.begin.get(), tokens.begin() + range.end.get());
    }
    return contents;
  }
};

std::string random_word(std::mt19937& random) {
  return " w" + std::to_string(std::min(random() % 2000, random() % 2000));
}

/// Sentences of 6 to 40 tokens, paragraphs of 1 to 8 sentences, each on one line.
Text prose(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  Text text;
  while (text.size() < size) {
    for (std::size_t sentences = 1 + random() % 8; sentences > 0; --sentences) {
      text.add(" The");
      for (std::size_t words = 5 + random() % 35; words > 0; --words) {
        text.add(random_word(random));
        if (random() % 12 == 0) text.add(",");
      }
      text.add(".");
    }
    text.add(random() % 3 == 0 ? "\n\n" : "\n");
  }
  return text;
}

/// Lines of 2 to 18 tokens, functions of 1 to 20 lines with an empty line between them.
Text code(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  Text text;
  while (text.size() < size) {
    for (std::size_t lines = 1 + random() % 20; lines > 0; --lines) {
      text.add("   ");
      for (std::size_t n = 1 + random() % 16; n > 0; --n) text.add(random() % 3 == 0 ? "(" : random_word(random));
      text.add(";\n");
    }
    text.add("\n");
  }
  return text;
}

/// One long word: no pause anywhere.
Text unbroken(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  Text text;
  while (text.size() < size) text.add("x" + std::to_string(random() % 1000));
  return text;
}

Text equal_tokens(std::size_t size, std::uint32_t /*seed*/) {
  Text text;
  while (text.size() < size) text.add("a");
  return text;
}

/// The same sentence over and over, as in the passkey test.
Text filler(std::size_t size, std::uint32_t /*seed*/) {
  Text text;
  while (text.size() < size) {
    for (const char* piece : {" The", " grass", " is", " green", ".", " The", " sky", " is", " blue", ".", " Here",
                              " we", " go", ".", " There", " and", " back", " again", "."}) {
      text.add(piece);
    }
  }
  return text;
}

using Maker = Text (*)(std::size_t, std::uint32_t);
constexpr Maker kMakers[] = {prose, code, unbroken, equal_tokens, filler};

/// Inserts, deletes or replaces `count` tokens at a random spot.
Text edited(const Text& text, std::mt19937& random, std::size_t count) {
  const std::size_t at = random() % (text.size() - count);
  const std::size_t kind = random() % 3;
  Text result;
  for (std::size_t i = 0; i < at; ++i) result.add(text.pieces[i]);
  if (kind != 1) {
    for (std::size_t i = 0; i < count; ++i) result.add(text.pieces[random() % text.size()]);
  }
  for (std::size_t i = at + (kind == 0 ? 0 : count); i < text.size(); ++i) result.add(text.pieces[i]);
  return result;
}

std::size_t new_blocks(const Text& before, const Text& after) {
  const auto old_contents = before.contents();
  const auto contents = after.contents();
  return static_cast<std::size_t>(std::count_if(contents.begin(), contents.end(),
                                                [&](const auto& block) { return !old_contents.contains(block); }));
}

void check_cover(const std::vector<StreamRange>& ranges, std::size_t size, const BlockLimits& limits) {
  std::int64_t next = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    RC_ASSERT(ranges[i].begin.get() == next);
    next = ranges[i].end.get();
    const bool last = i + 1 == ranges.size();
    RC_ASSERT(ranges[i].size() <= limits.max_tokens);
    RC_ASSERT(ranges[i].size() >= limits.min_tokens || ranges.size() == 1);
    RC_ASSERT(last || ranges[i].size() % limits.page_tokens == 0);
  }
  RC_ASSERT(next == static_cast<std::int64_t>(size));
}

// ── boundaries ──────────────────────────────────────────────────────────────────────────────────────────────────────

std::vector<Boundary> pauses_of(std::vector<std::string_view> pieces) { return boundaries(pieces); }

TEST(Boundaries, FollowTheTextOfTheTokens) {
  EXPECT_EQ(pauses_of({"He", " came", ",", " saw", ".", " She", " did", " too", ".\n", "\n", "End"}),
            (std::vector{word, none, clause, none, sentence, word, word, none, line, blank_line, word}));
}

TEST(Boundaries, ASentenceEndsBehindItsClosingQuotesAndNotInsideNumbersOrAbbreviations) {
  EXPECT_EQ(pauses_of({"Go", "!", "\"", " He"}), (std::vector{none, none, sentence, word}));
  EXPECT_EQ(pauses_of({"Go", "?", "”", " He"}), (std::vector{none, none, sentence, word}));
  EXPECT_EQ(pauses_of({"3", ".", "5", " m"}), (std::vector{none, none, word, word}));
  EXPECT_EQ(pauses_of({"e", ".", "g", ".", " so"}), (std::vector{none, none, none, word, word}));
  EXPECT_EQ(pauses_of({"好", "。", "好"}), (std::vector{none, sentence, word}));
}

TEST(Boundaries, ALineOfWhiteSpaceIsBlank) {
  EXPECT_EQ(pauses_of({"a", "\n", "  ", "\n", "b"}), (std::vector{word, line, word, blank_line, word}));
  EXPECT_EQ(pauses_of({"a", "\r\n", "\r\n", "b"}), (std::vector{word, line, blank_line, word}));
  EXPECT_EQ(pauses_of({"a", "\n\n", "b"}), (std::vector{word, blank_line, word}));
  EXPECT_EQ(pauses_of({"a", "\n   ", " b"}), (std::vector{word, line, word}));
}

TEST(Boundaries, AWrappedLineGoesOnAndAShortOneDoesNot) {
  const std::string long_line = "And he said that the children of the land had come up from the";
  EXPECT_EQ(pauses_of({long_line, "\n", "river"})[1], word);
  EXPECT_EQ(pauses_of({long_line, "\n   ", " river"})[1], word);
  EXPECT_EQ(pauses_of({long_line, ".", "\n", "River"})[2], line);
  EXPECT_EQ(pauses_of({long_line, "\n", "\n", "River"}), (std::vector{word, line, blank_line, word}));
  EXPECT_EQ(pauses_of({"import os", "\n", "import sys"})[1], line);
  EXPECT_EQ(pauses_of({long_line, ";", "\n", "}"})[2], line);
}

TEST(Boundaries, PartialCharactersAndEmptyTextAreNoTrouble) {
  EXPECT_TRUE(pauses_of({}).empty());
  EXPECT_EQ(pauses_of({"", "\xe2\x80", "\x9d", ""}).size(), 4U);
}

// ── cuts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

RC_GTEST_PROP(CutBlocks, CoverTheTextWithinTheBounds, ()) {
  const Maker make = *rc::gen::elementOf(std::vector<Maker>(std::begin(kMakers), std::end(kMakers)));
  Text text = make(*rc::gen::weightedOneOf<std::size_t>(
                       {{1, rc::gen::inRange<std::size_t>(0, 300)}, {1, rc::gen::inRange<std::size_t>(300, 3000)}}),
                   *rc::gen::arbitrary<std::uint32_t>());
  text.tokens.resize(*rc::gen::inRange<std::size_t>(0, text.size() + 1));
  text.pieces.resize(text.size());
  BlockLimits limits;
  limits.page_tokens = *rc::gen::element(1, 2, 16, 32);
  limits.min_tokens = limits.page_tokens * *rc::gen::inRange(1, 5);
  limits.max_tokens = 2 * limits.min_tokens + limits.page_tokens * *rc::gen::inRange(0, 5);
  const auto ranges = text.cut(limits);
  check_cover(ranges, text.size(), limits);
  RC_ASSERT(ranges == text.cut(limits));
}

RC_GTEST_PROP(CutBlocks, AnAnchorCutsAndItsTwoSidesAreCutAlone, ()) {
  BlockLimits limits;
  limits.page_tokens = *rc::gen::element(1, 16);
  const auto reach = static_cast<std::size_t>(limits.max_tokens + limits.min_tokens);
  const auto page = static_cast<std::size_t>(limits.page_tokens);
  const std::size_t at = (reach / page + 1 + *rc::gen::inRange<std::size_t>(0, 40)) * page;
  const std::size_t size = at + reach + 1 + *rc::gen::inRange<std::size_t>(0, 600);
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  std::vector<Token> tokens(size);
  std::vector<Boundary> pauses(size);
  for (std::size_t i = 0; i < size; ++i) {
    tokens[i] = static_cast<Token>(random() % 500);
    pauses[i] = static_cast<Boundary>(random() % 5);  // all but blank_line
  }
  pauses[at - 1] = blank_line;

  const auto whole = cut_blocks(tokens, pauses, limits);
  const std::span<const Token> t(tokens);
  const std::span<const Boundary> p(pauses);
  auto parts = cut_blocks(t.first(at), p.first(at), limits);
  for (const StreamRange& range : cut_blocks(t.subspan(at), p.subspan(at), limits)) {
    const auto shift = static_cast<std::int64_t>(at);
    parts.push_back({range.begin + shift, range.end + shift});
  }
  RC_ASSERT(whole == parts);
}

RC_GTEST_PROP(CutBlocks, BlocksBeyondTheAnchorsAroundAnEditStay, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  std::mt19937 random(seed);
  // Three parts, with an empty line between them and none elsewhere; the middle one is edited.
  std::vector<Token> tokens;
  std::vector<Boundary> pauses;
  const auto add = [&](std::size_t size, Boundary last) {
    for (std::size_t i = 0; i < size; ++i) {
      tokens.push_back(static_cast<Token>(random() % 500));
      pauses.push_back(i + 1 == size ? last : static_cast<Boundary>(random() % 5));
    }
  };
  const std::size_t first = 200 + random() % 400;
  const std::size_t middle = 200 + random() % 600;
  add(first, blank_line);
  add(middle, blank_line);
  add(200 + random() % 400, line);
  const auto before = cut_blocks(tokens, pauses, {});

  const std::size_t at = first + random() % middle;
  const auto inserted = static_cast<std::ptrdiff_t>(1 + random() % 300);
  std::vector<Token> new_tokens(static_cast<std::size_t>(inserted));
  std::vector<Boundary> new_pauses(new_tokens.size(), word);
  for (Token& token : new_tokens) token = static_cast<Token>(random() % 500);
  tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(at), new_tokens.begin(), new_tokens.end());
  pauses.insert(pauses.begin() + static_cast<std::ptrdiff_t>(at), new_pauses.begin(), new_pauses.end());
  const auto after = cut_blocks(tokens, pauses, {});

  for (const StreamRange& range : before) {
    if (range.end.get() <= static_cast<std::int64_t>(first)) {
      RC_ASSERT(std::count(after.begin(), after.end(), range) == 1);
    } else if (range.begin.get() >= static_cast<std::int64_t>(first + middle)) {
      const StreamRange moved{range.begin + inserted, range.end + inserted};
      RC_ASSERT(std::count(after.begin(), after.end(), moved) == 1);
    }
  }
}

struct Resynchronisation {
  double mean = 0.0;
  std::size_t at_95 = 0;
  std::size_t most = 0;
};

/// New blocks beyond those that the edit's own tokens fill, over edits with fixed seeds.
Resynchronisation measure(Maker make, std::size_t edit_tokens) {
  std::mt19937 random(20240607);
  std::vector<std::size_t> beyond;
  for (std::uint32_t trial = 0; trial < 150; ++trial) {
    const Text before = make(6000, trial);
    const Text after = edited(before, random, edit_tokens == 0 ? 1 + random() % 8 : edit_tokens);
    const std::size_t fill = edit_tokens / 64;
    const std::size_t changed = new_blocks(before, after);
    beyond.push_back(changed > fill ? changed - fill : 0);
  }
  std::sort(beyond.begin(), beyond.end());
  Resynchronisation result;
  for (const std::size_t n : beyond) result.mean += static_cast<double>(n) / static_cast<double>(beyond.size());
  result.at_95 = beyond[beyond.size() * 95 / 100];
  result.most = beyond.back();
  return result;
}

struct EditCase {
  const char* name;
  Maker make;
  /// Bounds on new blocks after an edit of 1 to 8 tokens.
  double mean_max;
  std::size_t at_95_max;
  std::size_t most_max;
};

class Edits : public testing::TestWithParam<EditCase> {};

TEST_P(Edits, OfAFewTokensChangeTwoBlocksInNineteenOfTwentyCases) {
  const Resynchronisation r = measure(GetParam().make, 0);
  SCOPED_TRACE(testing::Message() << "mean " << r.mean << ", 95 %: " << r.at_95 << ", most " << r.most);
  EXPECT_LE(r.mean, GetParam().mean_max);
  EXPECT_LE(r.at_95, GetParam().at_95_max);
  EXPECT_LE(r.most, GetParam().most_max);
  EXPECT_GT(r.mean, 0.0);
}

TEST_P(Edits, OfManyTokensChangeFewBlocksBeyondThoseTheyFill) {
  const Resynchronisation r = measure(GetParam().make, 320);
  SCOPED_TRACE(testing::Message() << "mean " << r.mean << ", 95 %: " << r.at_95 << ", most " << r.most);
  EXPECT_LE(r.mean, 1.0);
  EXPECT_LE(r.at_95, GetParam().at_95_max);
  EXPECT_LE(r.most, GetParam().most_max);
}

INSTANTIATE_TEST_SUITE_P(Texts, Edits,
                         testing::Values(EditCase{"prose", &prose, 1.3, 2, 5}, EditCase{"code", &code, 1.3, 2, 5},
                                         EditCase{"unbroken", &unbroken, 1.6, 3, 8},
                                         EditCase{"filler", &filler, 1.6, 3, 8},
                                         EditCase{"equal", &equal_tokens, 1.0, 1, 2}),
                         [](const auto& text) { return std::string(text.param.name); });

TEST(CutBlocks, EqualTokensKeepTheirBlocksWhenOneIsInserted) {
  EXPECT_LE(new_blocks(equal_tokens(5000, 0), equal_tokens(5001, 0)), 1U);
}

TEST(CutBlocks, SentencesAreRarelyCutThrough) {
  std::map<Boundary, double> share;
  for (const Maker make : {&prose, &code}) {
    share.clear();
    const Text text = make(60000, 5);
    const auto pauses = text.pauses();
    const auto blocks = text.cut();
    for (const StreamRange& range : blocks) {
      share[pauses[static_cast<std::size_t>(range.end.get() - 1)]] += 1.0 / static_cast<double>(blocks.size());
    }
    EXPECT_LE(share[none] + share[word] + share[clause], 0.02);
    EXPECT_GE(share[line] + share[blank_line], 0.5);
  }
}

TEST(CutBlocks, AMillionTokensWithoutAPauseAreCutInTime) {
  // The worst case for a rule that looks around: all priorities are equal.
  const std::vector<Token> tokens(1'000'000, 7);
  const std::vector<Boundary> pauses(tokens.size(), none);
  const auto blocks = cut_blocks(tokens, pauses, {});
  EXPECT_EQ(blocks.size(), tokens.size() / 64 - 1);  // the last 128 tokens are one block
}

// ── streams ─────────────────────────────────────────────────────────────────────────────────────────────────────────

RC_GTEST_PROP(CutStream, CutsEverySegmentByItselfAndLeavesGapsAlone, ()) {
  const Text text = prose(2000, *rc::gen::arbitrary<std::uint32_t>());
  const auto pauses = text.pauses();
  std::vector<Segment> segments;
  std::int64_t at = 0;
  for (int count = *rc::gen::inRange(0, 12); count > 0; --count) {
    at += *rc::gen::inRange(0, 2) * *rc::gen::inRange(0, 50);
    const std::int64_t size = *rc::gen::inRange(0, 700);
    if (at + size > static_cast<std::int64_t>(text.size())) break;
    Segment segment;
    segment.cls = *rc::gen::element(CacheClass::task_pinned, CacheClass::repo_map, CacheClass::volatile_);
    segment.tokens = {StreamPos(at), StreamPos(at + size)};
    segments.push_back(segment);
    at += size;
  }
  const auto blocks = cut_stream(text.tokens, pauses, segments, {});
  std::size_t next = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const auto begin = static_cast<std::size_t>(segments[s].tokens.begin.get());
    const auto size = static_cast<std::size_t>(segments[s].tokens.size());
    const auto alone =
        cut_blocks(std::span(text.tokens).subspan(begin, size), std::span(pauses).subspan(begin, size), {});
    for (const StreamRange& range : alone) {
      RC_ASSERT(next < blocks.size());
      const std::int64_t shift = segments[s].tokens.begin.get();
      RC_ASSERT((blocks[next].range == StreamRange{range.begin + shift, range.end + shift}));
      RC_ASSERT(blocks[next].segment == s && blocks[next].cls == segments[s].cls);
      ++next;
    }
  }
  RC_ASSERT(next == blocks.size());
}

}  // namespace
}  // namespace modeld
