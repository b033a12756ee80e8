// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::diagnose {
namespace {

using model::EventKind;

const RuleDef& kRule = rules::kStalledSteps;

// From `from_s` on the GPU reads as told; before, it works.
void Gpu(TestRun* run, int32_t gpu, double from_s, double utilization, double sm) {
  run->Series(run->Gpu(gpu), model::gpu::kUtilization, 1,
              [=](double t) { return t < from_s ? 0.9 : utilization; });
  run->Series(run->Gpu(gpu), model::gpu::kSmActive, 1,
              [=](double t) { return t < from_s ? 0.7 : sm; });
}

void Hang(TestRun* run) {
  Gpu(run, 0, 42, 1, 0.1);
  Gpu(run, 1, 42, 0, 0);
  run->Train({.rank = 0, .gpus = "0", .ends = false});
  run->Train({.rank = 1, .gpus = "1", .ends = false});
}

TEST(StalledSteps, AHangIsCriticalAndNamesTheRankThatDoesNotWait) {
  TestRun run(65);
  Hang(&run);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(findings[0].rank, 1);
  EXPECT_NE(findings[0].explanation.en.find("rank0 waited"), std::string::npos);
  EXPECT_NEAR(findings[0].lost_gpu_s.value_or(0), 2 * 23.5, 1);
  EXPECT_EQ(findings[0].evidence.at(0).steps, std::vector<int64_t>{400});
}

TEST(StalledSteps, NamesTheRankThatFailed) {
  TestRun run(120);
  Gpu(&run, 0, 42, 1, 0.1);
  run.Train({.rank = 0, .gpus = "0", .ends = false});
  const double t_s = run.Train({.rank = 1, .gpus = "1", .ends = false});
  run.Event(t_s + 0.1, EventKind::kException, 1, "RuntimeError");
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(findings[0].rank, 1);
}

TEST(StalledSteps, AStallThatEndedIsAWarning) {
  TestRun run(120);
  run.Train({.duration_s = [](int step) { return step == 250 ? 45 : 0.1; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(StalledSteps, AShorterOneIsOnlyRemarkedOn) {
  TestRun run(120);
  run.Train({.duration_s = [](int step) { return step == 250 ? 15 : 0.1; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(StalledSteps, OneSlowStepIsNone) {
  TestRun run(120);
  run.Train({.duration_s = [](int step) { return step == 250 ? 5.3 : 0.02; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StalledSteps, SlowStepsNeedALongerSilence) {
  TestRun run(400);
  run.Train({.epochs = 2, .steps = 20, .duration_s = [](int step) { return step == 30 ? 60 : 8; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StalledSteps, StartUpPhasesAndTheEndAreNone) {
  TestRun run(500);
  run.Train({.duration_s = [](int step) { return step == 0 ? 100 : 0.1; }, .eval_s = 40});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StalledSteps, ARunThatEndsWellWithoutTellingIsNone) {
  TestRun run(120);
  run.Train({.ends = false});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StalledSteps, WaitingForARankUntilTheToldEndIsAWarning) {
  TestRun run(65);
  Gpu(&run, 0, 42, 1, 0.1);
  Gpu(&run, 1, 42, 0, 0);
  for (int32_t rank = 0; rank < 2; ++rank) {
    run.Train({.rank = rank, .gpus = std::to_string(rank), .ends = false});
    run.Event(62, EventKind::kTrainEnd, rank);
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 1);
}

TEST(StalledSteps, OtherWorkOfAllRanksBeforeTheToldEndIsNone) {
  TestRun run(65);
  for (int32_t rank = 0; rank < 2; ++rank) {
    Gpu(&run, rank, 42, 0.9, 0.7);
    run.Train({.rank = rank, .gpus = std::to_string(rank), .ends = false});
    run.Event(62, EventKind::kTrainEnd, rank);
  }
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StalledSteps, CannotJudgeWithoutSteps) {
  TestRun run(120);
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

TEST(StalledSteps, ARecoveredOneThatTookAFifthOfTheRunIsAWarning) {
  TestRun run(60);
  run.Train({.duration_s = [](int step) { return step == 250 ? 15 : 0.1; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

}  // namespace
}  // namespace epochmeter::diagnose
