#include "stream/sentences.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace modeld {
namespace {

std::string without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; });
  return text;
}

TEST(Sentences, EndAtStopsAndLineEnds) {
  EXPECT_EQ(
      sentences_of("The old violin is kept behind the bakery. \"Who would steal it there?\" asked the baker's wife"),
      (std::vector<std::string>{"The old violin is kept behind the bakery.", "\"Who would steal it there?\"",
                                "asked the baker's wife"}));
  EXPECT_EQ(sentences_of("int answer_to_everything() {\n  return forty_two_as_a_constant;\n}\n"),
            (std::vector<std::string>{"int answer_to_everything() {", "return forty_two_as_a_constant;", "}"}));
}

TEST(Sentences, ShortPiecesJoinWhatFollows) {
  EXPECT_EQ(sentences_of("Genesis 1\n\n1:1 In the beginning God created the heaven and the earth."),
            (std::vector<std::string>{"Genesis 1\n\n1:1 In the beginning God created the heaven and the earth."}));
  EXPECT_TRUE(sentences_of(" \n\t ").empty());
  EXPECT_TRUE(sentences_of("").empty());
}

RC_GTEST_PROP(Sentences, LoseNothingButWhiteSpaceAndAreNeverTooLong, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("word", " ", ".", "\n", "? ", "ä", "a longer piece of text", "x\"", ") "));
  std::string text;
  for (const std::string& piece : pieces) text += piece + piece + piece;
  std::string joined;
  for (const std::string& sentence : sentences_of(text)) {
    RC_ASSERT(!sentence.empty() && sentence.size() <= 400U);
    RC_ASSERT((static_cast<unsigned char>(sentence.front()) & 0xC0U) != 0x80U);
    joined += sentence;
  }
  RC_ASSERT(without_spaces(joined) == without_spaces(text));
}

TEST(Sentences, AWordLongerThanASentenceIsCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "ä";
  const auto sentences = sentences_of("x" + text);
  ASSERT_EQ(sentences.size(), 2U);
  EXPECT_EQ(sentences[0] + sentences[1], "x" + text);
  EXPECT_NE(static_cast<unsigned char>(sentences[1][0]) & 0xC0U, 0x80U);
}

}  // namespace
}  // namespace modeld
