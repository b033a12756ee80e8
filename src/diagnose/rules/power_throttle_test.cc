// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_health_metrics.h"
#include "model/gpu_power_metrics.h"

namespace epochmeter::diagnose {
namespace {

namespace gpu = model::gpu;
const RuleDef& kRule = rules::kPowerThrottle;

void AddCapped(double ratio, double clock_hz, TestRun* run) {
  const model::EntityId entity = run->Gpu(0);
  run->Series(entity, gpu::kThrottlePower, 1, [ratio](double t_s) { return ratio * t_s; });
  run->Constant(entity, gpu::kSmClock, 1, clock_hz);
  run->Constant(entity, gpu::kMaxSmClock, 30, 1980e6);
}

TEST(PowerThrottle, AtThePowerLimitWithNearlyFullClocksIsInfo) {
  TestRun run(60);
  AddCapped(0.9, 1900e6, &run);
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_EQ(findings[0].lost_gpu_s, std::nullopt);
}

TEST(PowerThrottle, WarningWhereTheClockFallsFarForLong) {
  TestRun run(60);
  AddCapped(0.9, 1200e6, &run);
  run.Constant(run.Gpu(0), gpu::kPowerLimit, 1, 350);
  run.Constant(run.Gpu(0), gpu::kPowerLimitDefault, 30, 700);
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 0);
  EXPECT_EQ(findings[0].advice.at(0).code, "nvidia-smi -i 0 -pl 700");
  EXPECT_GT(findings[0].lost_gpu_s.value_or(0), 8);
}

TEST(PowerThrottle, LowClocksInAShortTimeAtTheLimitAreInfo) {
  TestRun run(60);
  AddCapped(0.2, 1200e6, &run);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(PowerThrottle, LowClocksWithLittleToDoAreNoFault) {
  TestRun run(60);
  const model::EntityId entity = run.Gpu(0);
  run.Constant(entity, gpu::kThrottleReasons, 1, 0x1);
  run.Constant(entity, gpu::kSmClock, 1, 400e6);
  run.Constant(entity, gpu::kMaxSmClock, 30, 1980e6);
  run.Series(entity, gpu::kThrottleLowUtilization, 1, [](double t_s) { return t_s; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(PowerThrottle, TheHardwaresBrakeIsAWarning) {
  TestRun run(60);
  run.Constant(run.Gpu(0), gpu::kThrottleReasons, 1, 0x8 | 0x80);
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NE(findings[0].summary.en.find("braked"), std::string::npos);
}

TEST(PowerThrottle, AThermalSlowdownOfTheHardwareIsNotPower) {
  TestRun run(60);
  run.Constant(run.Gpu(0), gpu::kThrottleReasons, 1, 0x8 | 0x40);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(PowerThrottle, CannotJudgeWithoutReasons) {
  TestRun run(60);
  run.Constant(run.Gpu(0), gpu::kPower, 1, 700);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
