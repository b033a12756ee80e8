// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_health_metrics.h"

namespace epochmeter::diagnose {
namespace {

namespace gpu = model::gpu;
const RuleDef& kRule = rules::kThermalThrottle;

// A GPU that is held down by heat in a part of each second, with its clock.
void AddHot(int32_t index, double ratio, double clock_hz, TestRun* run) {
  const model::EntityId entity = run->Gpu(index);
  run->Series(entity, gpu::kThrottleThermal, 1, [ratio](double t_s) { return 100 + ratio * t_s; });
  run->Constant(entity, gpu::kSmClock, 1, clock_hz);
  run->Constant(entity, gpu::kMaxSmClock, 30, 1980e6);
  run->Constant(entity, gpu::kTemperature, 1, 88);
}

TEST(ThermalThrottle, FiresWhereHeatHoldsTheClocksDown) {
  TestRun run(60);
  AddHot(0, 0.4, 1500e6, &run);
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 0);
  const auto& evidence = findings[0].evidence.at(0);
  EXPECT_EQ(evidence.series, "gpu0 throttle_thermal_ratio");
  EXPECT_NEAR(evidence.values.at(0).second, 0.4, 0.01);
  EXPECT_GT(findings[0].lost_gpu_s.value_or(0), 5);
}

TEST(ThermalThrottle, TakesTheReasonMaskWhereThereIsNoCounter) {
  TestRun run(60);
  run.Series(run.Gpu(0), gpu::kThrottleReasons, 1,
             [](double t_s) { return static_cast<int>(t_s) % 4 == 0 ? 0x20 : 0; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(ThermalThrottle, ABriefBlipIsNoFault) {
  TestRun run(60);
  AddHot(0, 0.001, 1975e6, &run);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(ThermalThrottle, ALittleIsInfo) {
  TestRun run(60);
  AddHot(0, 0.02, 1970e6, &run);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(ThermalThrottle, OtherReasonsAreNotHeat) {
  TestRun run(60);
  const model::EntityId entity = run.Gpu(0);
  run.Constant(entity, gpu::kThrottleReasons, 1, 0x1 | 0x2 | 0x4);
  run.Series(entity, gpu::kThrottleLowUtilization, 1, [](double t_s) { return t_s; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(ThermalThrottle, OneFindingForManyGpus) {
  TestRun run(60);
  for (int i = 0; i < 4; ++i) AddHot(i, 0.1 * (i + 1), 1500e6, &run);
  run.Train({.gpus = "0,1,2,3"});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, std::nullopt);
  EXPECT_NE(findings[0].summary.en.find("4 GPUs (worst: gpu3)"), std::string::npos);
}

TEST(ThermalThrottle, HeatBeforeTheStepsIsNotJudged) {
  TestRun run(60);
  run.Series(run.Gpu(0), gpu::kThrottleThermal, 1, [](double t_s) { return std::min(t_s, 5.0); });
  run.Train({.begin_s = 8});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(ThermalThrottle, CannotJudgeWithoutReasons) {
  TestRun run(60);
  run.Constant(run.Gpu(0), gpu::kTemperature, 1, 95);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
