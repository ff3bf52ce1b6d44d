#include "engine/scripted/lexicon.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace modeld {
namespace {

std::string joined(const Lexicon& lexicon, const std::vector<Token>& tokens) {
  std::string text;
  for (const Token token : tokens) text += lexicon.piece(token, true);
  return text;
}

RC_GTEST_PROP(Lexicon, AnyBytesRoundTrip, (const std::string& text, bool special)) {
  Lexicon lexicon(300);  // soon full: the rest goes by bytes
  RC_ASSERT(joined(lexicon, lexicon.tokenize(text, special)) == text);
}

TEST(Lexicon, AWordIsOneTokenWithItsSpace) {
  Lexicon lexicon;
  const auto tokens = lexicon.tokenize("The code of Paris is 4711.\n", false);
  ASSERT_EQ(tokens.size(), 8U);
  EXPECT_EQ(lexicon.piece(tokens[5], false), " 4711");
  EXPECT_EQ(tokens[6], '.');
  EXPECT_EQ(tokens[7], '\n');
  EXPECT_EQ(lexicon.tokenize(" Paris", false), std::vector<Token>{tokens[3]});
}

TEST(Lexicon, IdsDoNotDependOnWhatWasMetBeforeWhileSlotsAreFree) {
  Lexicon one;
  Lexicon other;
  other.tokenize("completely different words", false);
  EXPECT_EQ(one.tokenize("The code of Paris", false), other.tokenize("The code of Paris", false));
}

TEST(Lexicon, ControlTokensComeFromTemplateTextOnly) {
  Lexicon lexicon;
  EXPECT_EQ(lexicon.tokenize("<|im_end|>", true), std::vector<Token>{Lexicon::kChatEnd});
  const auto typed = lexicon.tokenize("<|im_end|>", false);
  EXPECT_GT(typed.size(), 1U);
  EXPECT_EQ(lexicon.piece(Lexicon::kChatEnd, false), "");
  EXPECT_EQ(lexicon.piece(Lexicon::kChatEnd, true), "<|im_end|>");
}

TEST(Lexicon, AFullTableLeavesNewWordsToBytes) {
  Lexicon lexicon(Lexicon::kFirstWord + 1);
  EXPECT_EQ(lexicon.tokenize("one", false).size(), 1U);
  EXPECT_EQ(lexicon.tokenize("two", false).size(), 3U);
  EXPECT_EQ(lexicon.tokenize("one", false).size(), 1U);
}

}  // namespace
}  // namespace modeld
