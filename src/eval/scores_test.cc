#include "eval/scores.h"

#include <gtest/gtest.h>

namespace modeld {
namespace {

QuestionResult answered(std::string question, double right) {
  QuestionResult result;
  result.question = std::move(question);
  result.forced_right = right;
  result.seconds = 2.0;
  return result;
}

Cell cell_of(std::string task, std::string mode, std::vector<QuestionResult> results) {
  Cell cell;
  cell.task = std::move(task);
  cell.mode = std::move(mode);
  cell.tokens = 4096;
  cell.parameters = "seed=1";
  cell.results = std::move(results);
  cell.prepare_seconds = 3.0;
  return cell;
}

TEST(Scores, AreThoseOfTheCellsInTheirOrder) {
  std::vector<Cell> cells = {cell_of("a.x", "ours", {answered("1", 1), answered("2", 0), answered("3", 1)}),
                             cell_of("a.x", "fresh", {answered("1", 1), answered("2", 1)}), cell_of("b.x", "ours", {})};
  cells[0].results[0].ranks = {1};
  cells[0].results[0].read = 1.0;
  cells[0].results[1].ranks = {5};
  cells[0].results[2].free_asked = true;
  const std::vector<CellScores> scores = scores_of(cells, 1);
  ASSERT_EQ(scores.size(), 3U);
  const CellScores& ours = scores[0];
  EXPECT_EQ(ours.task, "a.x");
  EXPECT_EQ(ours.tokens, 4096);
  EXPECT_EQ(ours.parameters, "seed=1");
  EXPECT_EQ(ours.forced.asked, 3);
  EXPECT_DOUBLE_EQ(ours.forced.value, 2.0 / 3.0);
  EXPECT_EQ(ours.forced.interval.low, wilson(2, 3).low);
  EXPECT_EQ(ours.forced.interval.high, wilson(2, 3).high);
  EXPECT_DOUBLE_EQ(ours.question_seconds, 2.0);
  EXPECT_DOUBLE_EQ(ours.prepare_seconds, 3.0);
  ASSERT_TRUE(ours.free);
  EXPECT_EQ(ours.free->asked, 1);
  EXPECT_EQ(ours.free->value, 0.0);
  ASSERT_TRUE(ours.recall);
  EXPECT_EQ(*ours.recall, (std::array<double, 4>{0.5, 0.5, 1.0, 1.0}));
  EXPECT_EQ(ours.read, 0.5);
}

TEST(Scores, RetentionIsOverTheQuestionsThatFreshHasToo) {
  const std::vector<Cell> cells = {cell_of("a.x", "ours", {answered("1", 1), answered("2", 0), answered("3", 1)}),
                                   cell_of("a.x", "fresh", {answered("1", 1), answered("2", 1)}),
                                   cell_of("b.x", "ours", {answered("1", 1)}),
                                   cell_of("a.x", "dense-12288", {answered("9", 1)})};
  const std::vector<CellScores> scores = scores_of(cells, 1);
  ASSERT_TRUE(scores[0].retention);
  EXPECT_DOUBLE_EQ(scores[0].retention->value, 0.5);
  EXPECT_FALSE(scores[1].retention);  // fresh itself
  EXPECT_FALSE(scores[2].retention);  // no fresh cell of its task
  EXPECT_FALSE(scores[3].retention);  // no question in common
}

TEST(Scores, WhatWasNeverAskedIsNothingAndNotZero) {
  const std::vector<Cell> cells = {cell_of("a.x", "fresh", {answered("1", 1)}), cell_of("a.y", "fresh", {})};
  for (const CellScores& scores : scores_of(cells, 1)) {
    EXPECT_FALSE(scores.free);
    EXPECT_FALSE(scores.recall);
    EXPECT_FALSE(scores.read);
  }
}

}  // namespace
}  // namespace modeld
