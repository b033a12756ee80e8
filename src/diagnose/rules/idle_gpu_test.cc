// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kIdleGpu;

// Works until `until_s`, then rests.
void WorkUntil(TestRun* run, double until_s, int32_t gpu = 0) {
  run->Series(run->Gpu(gpu), model::gpu::kUtilization, 1,
              [=](double t) { return t < until_s ? 0.9 : 0.0; });
  run->Constant(run->Gpu(gpu), model::gpu::kOwnMemory, 1, 4e9);
}

TEST(IdleGpu, FiresWhereStepsGoOnWithoutWork) {
  TestRun run(42);
  WorkUntil(&run, 15);
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 0);
  EXPECT_NEAR(findings[0].lost_gpu_s.value_or(0), 26.5, 1);
  EXPECT_EQ(findings[0].evidence.size(), 1U);
}

TEST(IdleGpu, FiresWhereTheGpuIsHeldAfterTheTraining) {
  TestRun run(400);
  WorkUntil(&run, 42);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(IdleGpu, AMinuteAfterTheTrainingIsItsNormalEnd) {
  TestRun run(110);
  WorkUntil(&run, 42);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(IdleGpu, FiresForAGpuThatIsNeverUsed) {
  TestRun run(60);
  WorkUntil(&run, 1000, 0);
  WorkUntil(&run, 0, 1);
  run.Train({.gpus = "0,1"});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 1);
}

TEST(IdleGpu, IsSilentWhereTheGpuWorks) {
  TestRun run(50);
  WorkUntil(&run, 1000);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(IdleGpu, StartUpAndShortPausesAreNotIdle) {
  TestRun run(80);
  run.Series(run.Gpu(0), model::gpu::kUtilization, 1, [](double t) {
    const bool pause = static_cast<int>(t) % 10 < 4;
    return t < 30 || pause ? 0.0 : 0.9;
  });
  run.Train({.begin_s = 29});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(IdleGpu, EvaluationCheckpointsAndStallsAreLeftToTheirRules) {
  TestRun run(155);
  WorkUntil(&run, 0);
  run.Train({.duration_s = [](int step) { return step == 50 ? 60 : 0.02; }, .eval_s = 20});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(IdleGpu, WaitingForDataIsLeftToItsRule) {
  TestRun run(50);
  WorkUntil(&run, 10);
  run.Train({.data_wait_s = [](int) { return 0.09; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(IdleGpu, AGpuThatTheJobDoesNotHoldIsNotItsOwn) {
  TestRun run(60);
  run.Series(run.Gpu(0), model::gpu::kUtilization, 1, [](double t) { return t < 15 ? 0.9 : 0.0; });
  run.Series(run.Gpu(0), model::gpu::kOwnMemory, 1, [](double t) { return t < 15 ? 4e9 : 0.0; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(IdleGpu, JudgesRunsThatTellNoSteps) {
  TestRun run(400);
  WorkUntil(&run, 100);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(IdleGpu, CannotJudgeWithoutUtilisation) {
  TestRun run(60);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
