// SPDX-License-Identifier: Apache-2.0
#include "cli/step_counter.h"

#include <gtest/gtest.h>

#include <vector>

namespace epochmeter::cli {
namespace {

using Move = StepCounter::Move;

PrintedCounters InEpoch(int64_t epoch, int64_t step, std::optional<int64_t> of = {}) {
  return {.epoch = epoch, .in_epoch = step, .step = {}, .steps_per_epoch = of};
}

PrintedCounters Nameless(int64_t step) {
  return {.epoch = {}, .in_epoch = step, .step = {}, .steps_per_epoch = {}};
}

PrintedCounters OfAll(int64_t step, std::optional<int64_t> epoch = {}) {
  return {.epoch = epoch, .in_epoch = {}, .step = step, .steps_per_epoch = {}};
}

std::vector<Move> Moves(StepCounter* counter, const std::vector<PrintedCounters>& lines) {
  std::vector<Move> moves;
  for (const PrintedCounters& line : lines) moves.push_back(counter->Next(line, 0));
  return moves;
}

TEST(StepCounter, CountsEachStepFromOneOrZero) {
  for (const int64_t first : {0, 1}) {
    StepCounter counter;
    const auto moves = Moves(&counter, {InEpoch(1, first, 2), InEpoch(1, first + 1, 2),
                                        InEpoch(2, first, 2), InEpoch(2, first + 1, 2)});
    for (size_t i = 0; i < moves.size(); ++i) {
      EXPECT_EQ(moves[i].steps, 1) << first;
      EXPECT_EQ(moves[i].total, static_cast<int64_t>(i) + 1) << first;
      EXPECT_EQ(moves[i].new_epoch, i % 2 == 0);
    }
    EXPECT_TRUE(moves[0].begins);
    EXPECT_FALSE(moves[2].begins);
    EXPECT_EQ(moves[2].ended_steps, 2);
    EXPECT_EQ(counter.StepsOfEpoch(), 2);
    EXPECT_TRUE(counter.MayBeOver());
  }
}

TEST(StepCounter, CountsTheStepsBetweenPrintedOnes) {
  StepCounter counter;
  const auto moves = Moves(&counter, {InEpoch(1, 10, 25), InEpoch(1, 20, 25), InEpoch(2, 10, 25)});
  EXPECT_EQ(moves[0].steps, 1);  // it may have been resumed there
  EXPECT_EQ(moves[1].steps, 10);
  EXPECT_EQ(moves[1].total, 20);
  EXPECT_EQ(moves[2].ended_steps, 25);
  EXPECT_EQ(moves[2].steps, 10);
  EXPECT_EQ(moves[2].total, 35);
  EXPECT_FALSE(counter.MayBeOver());
}

TEST(StepCounter, TakesNoUnprintedRestWhereALineShouldHaveToldIt) {
  StepCounter counter;
  const auto moves = Moves(&counter, {InEpoch(1, 10, 50), InEpoch(1, 20, 50), InEpoch(2, 10, 50)});
  EXPECT_EQ(moves[2].ended_steps, 20);
}

TEST(StepCounter, CountsNothingBeforeALineAtWhichATrainingWasTakenUp) {
  StepCounter counter;
  const auto moves = Moves(&counter, {InEpoch(4, 31, 50), InEpoch(4, 32, 50), InEpoch(5, 1, 50)});
  EXPECT_EQ(moves[0].steps, 1);
  EXPECT_EQ(moves[1].steps, 1);
  EXPECT_FALSE(moves[1].total);
  EXPECT_FALSE(moves[2].ended_steps);
  EXPECT_FALSE(moves[2].total);
}

TEST(StepCounter, TakesALinePerEpochForAllItsSteps) {
  StepCounter counter;
  const auto moves = Moves(&counter, {InEpoch(1, 10, 10), InEpoch(2, 10, 10)});
  EXPECT_EQ(moves[0].steps, 10);
  EXPECT_EQ(moves[1].steps, 10);
  EXPECT_EQ(moves[1].ended_steps, 10);
  EXPECT_EQ(moves[1].total, 20);
}

TEST(StepCounter, TakesTheSameStepToldTwiceForOne) {
  StepCounter counter;
  const auto moves = Moves(&counter, {InEpoch(1, 1), InEpoch(1, 2), InEpoch(1, 2), InEpoch(1, 1)});
  EXPECT_TRUE(moves[1].forward);
  EXPECT_FALSE(moves[2].forward);
  EXPECT_FALSE(moves[3].forward);
  EXPECT_EQ(counter.StepsOfEpoch(), 2);
}

TEST(StepCounter, CountsNoEvaluationThatLooksLikeTraining) {
  StepCounter counter;
  const auto moves = Moves(&counter, {InEpoch(1, 1, 2), InEpoch(1, 2, 2), InEpoch(1, 1, 3),
                                      InEpoch(1, 2, 3), InEpoch(1, 3, 3), InEpoch(2, 1, 2)});
  for (const size_t at : {2, 3, 4}) {
    EXPECT_FALSE(moves[at].forward) << at;
    EXPECT_TRUE(moves[at].aside) << at;
  }
  EXPECT_EQ(moves[5].ended_steps, 2);
  EXPECT_EQ(moves[5].total, 3);
  // One in the middle of an epoch.
  StepCounter middle;
  const auto lines = Moves(&middle, {InEpoch(1, 1, 9), InEpoch(1, 2, 9), InEpoch(1, 1, 4),
                                     InEpoch(1, 2, 4), InEpoch(1, 3, 9), InEpoch(1, 4, 9)});
  EXPECT_TRUE(lines[3].aside);
  EXPECT_TRUE(lines[4].forward);
  EXPECT_EQ(lines[5].total, 4);
}

TEST(StepCounter, BeginsAgainWithANewStart) {
  StepCounter counter;
  Moves(&counter, {InEpoch(3, 1), InEpoch(3, 2)});
  EXPECT_TRUE(counter.Next(InEpoch(2, 1), 0).begins);
  EXPECT_TRUE(counter.Next(InEpoch(2, 1), 1).begins);
  StepCounter of_all;
  Moves(&of_all, {OfAll(1), OfAll(2)});
  EXPECT_TRUE(of_all.Next(OfAll(1), 0).begins);
}

TEST(StepCounter, CountsOverEpochs) {
  StepCounter counter;
  const auto moves = Moves(&counter, {OfAll(1, 0), OfAll(2, 0), OfAll(3, 1), OfAll(4, 1)});
  EXPECT_TRUE(moves[2].new_epoch);
  EXPECT_EQ(moves[2].ended_steps, 2);
  EXPECT_EQ(moves[3].total, 4);
}

TEST(StepCounter, NumbersEpochsThatNoLineNames) {
  StepCounter counter;
  const auto moves = Moves(&counter, {Nameless(1), Nameless(2), Nameless(1), Nameless(2)});
  EXPECT_EQ(moves[0].epoch, 1);
  EXPECT_EQ(moves[3].epoch, 2);
  EXPECT_FALSE(moves[2].begins);
  // What first seemed to count on.
  StepCounter turned;
  const auto later = Moves(&turned, {OfAll(1), OfAll(2), Nameless(1), Nameless(2)});
  EXPECT_FALSE(later[1].epoch);
  EXPECT_TRUE(later[2].ends_first);
  EXPECT_EQ(later[2].ended_steps, 2);
  EXPECT_EQ(later[3].epoch, 2);
}

TEST(StepCounter, KnowsEpochsWithoutSteps) {
  StepCounter counter;
  const PrintedCounters first{.epoch = 1, .in_epoch = {}, .step = {}, .steps_per_epoch = {}};
  const PrintedCounters second{.epoch = 2, .in_epoch = {}, .step = {}, .steps_per_epoch = {}};
  const auto moves = Moves(&counter, {first, second});
  EXPECT_EQ(moves[1].steps, 0);
  EXPECT_TRUE(moves[1].new_epoch);
  EXPECT_FALSE(moves[1].ended_steps);
}

}  // namespace
}  // namespace epochmeter::cli
