#include "eval/code_facts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace modeld {
namespace {

std::vector<std::string> stated(std::string_view text) {
  std::vector<std::string> result;
  for (const CodeFact& fact : python_facts(text)) {
    EXPECT_EQ(text.substr(fact.answer_at, fact.answer.size()), fact.answer);
    EXPECT_LE(fact.begin, fact.answer_at);
    EXPECT_GE(fact.end, fact.answer_at + fact.answer.size());
    result.push_back(fact.question + " " + fact.answer);
  }
  return result;
}

using Facts = std::vector<std::string>;

TEST(PythonFacts, ConstantsWithLiteralValues) {
  EXPECT_EQ(stated("MAX_LINE = 65536  # bytes\nDEFAULT_NAME = 'spool'\n"),
            (Facts{"What is the value of the constant MAX_LINE? 65536",
                   "What is the value of the constant DEFAULT_NAME? spool"}));
}

TEST(PythonFacts, DefaultValuesOfParameters) {
  EXPECT_EQ(stated("def connect(host, port=8080, *, mode: str = 'rb',\n            flag=True):\n    pass\n"),
            (Facts{"What is the default value of the parameter port of the function connect? 8080",
                   "What is the default value of the parameter mode of the function connect? rb"}));
}

TEST(PythonFacts, WhatIsStatedTwiceIsNotAsked) {
  EXPECT_EQ(stated("LIMIT = 10\nLIMIT = 20\ndef go(n=55):\n  pass\nclass A:\n  def go(self):\n    pass\n"), Facts{});
}

TEST(PythonFacts, ExpressionsAndTrivialValuesAreNotAsked) {
  EXPECT_EQ(
      stated("SIZE = 16 * 1024\nZERO_IT = 0\nNAMES = ['a', 'bc']\ndef f(a=1, b=-1, c=None, d=(10, 20), e=g(33)):\n"),
      Facts{});
}

TEST(PythonFacts, CommentsAndStringsAreNoCode) {
  EXPECT_EQ(
      stated("# LIMIT = 10\n\"\"\"\nLIMIT = 20\ndef f(a=33): pass\n\"\"\"\nTEXT = 'a # b'\ndef g(x='#', y=44):\n"),
      Facts{"What is the default value of the parameter y of the function g? 44"});
}

TEST(PythonFacts, BrokenSourceStatesNothingAndEnds) {
  for (const char* text : {"def f(", "def f(a=10", "A = '", "'''", "LIMIT = ", "def ", "def f(a=10)", "X\\", "'\\"})
    for (const CodeFact& fact : python_facts(text)) EXPECT_EQ(fact.answer, "10");
}

}  // namespace
}  // namespace modeld
