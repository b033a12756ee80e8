// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kOomForecast;

// 50 MB a step of 0.1 s, on a device of 24 GB (120 MB of them the driver's).
double Held(double t_s) { return 4e8 + 5e8 * t_s; }

std::vector<model::Finding> JudgeGrowth(TestRun& run, const TestTraining& training) {
  AddDevice(run, 0, 24e9, [](double t_s) { return Held(t_s) + 1e9; });
  AddAllocator(run, 0, {.held = Held, .peak = [](double t_s) { return Held(t_s) + 2e9; }});
  run.Train(training);
  return run.Judge(kRule);
}

TEST(OomForecast, SaysWhichStepDoesNotFit) {
  TestRun run(22);
  const auto findings = JudgeGrowth(run, {.epochs = 1, .steps = 200, .ends = false});
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 0);
  // (24 - 0.12 - 2.05 - 0.4) GB / 0.5 GB/s = 42.9 s, at 0.1 s a step from 1.5 s on.
  EXPECT_NEAR(ValueOf(findings[0], "limit_step"), 414, 4);
  EXPECT_LE(ValueOf(findings[0], "limit_step_low"), ValueOf(findings[0], "limit_step"));
  EXPECT_GE(ValueOf(findings[0], "limit_step_high"), ValueOf(findings[0], "limit_step"));
  EXPECT_NEAR(ValueOf(findings[0], "limit_bytes"), 23.88e9, 1);
  EXPECT_NEAR(ValueOf(findings[0], "limit_in_s"), 21.4, 0.5);
}

TEST(OomForecast, ALimitBeyondTheTrainingsEndIsOnlyRemarkedOn) {
  TestRun run(40);
  const auto findings = JudgeGrowth(run, {.epochs = 3, .steps = 100});
  EXPECT_EQ(SeverityOf(findings), "info");
}

TEST(OomForecast, AfterTheEndOfMemoryThereIsNothingToForecast) {
  TestRun run(40);
  run.Event(31.6, model::EventKind::kException, 0, "OutOfMemoryError", {});
  EXPECT_EQ(SeverityOf(JudgeGrowth(run, {.epochs = 1, .steps = 300, .ends = false})), "none");
}

TEST(OomForecast, SteadyMemoryHasNoLimit) {
  TestRun run(60);
  AddDevice(run, 0, 24e9, [](double) { return 20e9; });
  AddAllocator(run, 0, {.held = [](double) { return 19e9; }});
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(OomForecast, CannotJudgeWithoutTheDevicesSize) {
  TestRun run(60);
  AddAllocator(run, 0, {.held = Held});
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
