// SPDX-License-Identifier: Apache-2.0
#include "diagnose/stalls.h"

#include <gtest/gtest.h>

#include "diagnose/test_run.h"

namespace epochmeter::diagnose {
namespace {

using model::EventKind;

std::vector<Stall> Stalls(const Facts& facts) {
  std::vector<Stall> all;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    for (const Stall& stall : StallsOf(facts, i, 10, 10)) all.push_back(stall);
  }
  return all;
}

TEST(Stalls, ASilenceAtTheEndIsOpen) {
  TestRun run(120);
  run.Train({.ends = false});
  const auto stalls = Stalls(run.Finish());
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_TRUE(stalls[0].open);
  EXPECT_EQ(stalls[0].after_step, 400);
  EXPECT_NEAR(stalls[0].median_s, 0.1, 1e-6);
  EXPECT_EQ(stalls[0].interval.end_ns, 120'000'000'000);
}

TEST(Stalls, ALongStepIsAStallThatEnded) {
  TestRun run(120);
  run.Train({.duration_s = [](int step) { return step == 250 ? 40 : 0.1; }});
  const auto stalls = Stalls(run.Finish());
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_FALSE(stalls[0].open);
  EXPECT_EQ(stalls[0].after_step, 250);
}

TEST(Stalls, TheNormalEndAndWhatFollowsItAreNone) {
  TestRun run(300);
  run.Train({});
  EXPECT_TRUE(Stalls(run.Finish()).empty());
}

TEST(Stalls, EvaluationAndCheckpointsAreNone) {
  TestRun run(300);
  run.Train({.eval_s = 30});
  EXPECT_TRUE(Stalls(run.Finish()).empty());
}

TEST(Stalls, APhaseThatNeverEndsExcusesNoLongerThanItsLike) {
  TestRun run(600);
  const double t_s = run.Train({.eval_s = 5, .ends = false});
  run.Event(t_s + 1, EventKind::kPhaseBegin, 0, "eval");
  const auto stalls = Stalls(run.Finish());
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_TRUE(stalls[0].open);
}

TEST(Stalls, TheOnlyEvaluationMayStillGoOn) {
  TestRun run(600);
  const double t_s = run.Train({.ends = false});
  run.Event(t_s + 1, EventKind::kPhaseBegin, 0, "eval");
  EXPECT_TRUE(Stalls(run.Finish()).empty());
}

TEST(Stalls, RegularPausesBetweenEpochsAreNone) {
  TestRun run(300);
  run.Train({.duration_s = [](int step) { return step > 0 && step % 100 == 0 ? 20 : 0.1; }});
  EXPECT_TRUE(Stalls(run.Finish()).empty());
}

TEST(Stalls, AnExceptionAtTheEndOfASilenceEndsItOpen) {
  TestRun run(300);
  const double t_s = run.Train({.ends = false});
  run.Event(t_s + 60, EventKind::kException, 0, "RuntimeError");
  const auto stalls = Stalls(run.Finish());
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_TRUE(stalls[0].open);
  EXPECT_NEAR(static_cast<double>(stalls[0].interval.end_ns) * 1e-9, t_s + 60, 1e-6);
}

TEST(Stalls, TheTimeUntilATrainingWasBegunAnewIsNone) {
  for (const EventKind kind : {EventKind::kTrainBegin, EventKind::kMark}) {
    TestRun run(120);
    run.Train({.duration_s = [](int step) { return step == 250 ? 40 : 0.1; }});
    run.Event(50, kind, 0, "run_start");
    EXPECT_TRUE(Stalls(run.Finish()).empty());
  }
}

TEST(Stalls, NeedThreeStepsToKnowWhatIsUsual) {
  TestRun run(300);
  run.Train({.epochs = 1, .steps = 3, .ends = false});
  EXPECT_TRUE(Stalls(run.Finish()).empty());
}

}  // namespace
}  // namespace epochmeter::diagnose
