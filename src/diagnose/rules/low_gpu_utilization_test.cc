// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kLowGpuUtilization;

std::string SeverityAt(double utilization, double wait_s = 0, double sm = 0.4) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, utilization);
  run.Constant(run.Gpu(0), model::gpu::kSmActive, 1, sm);
  run.Train({.data_wait_s = [=](int) { return wait_s; }});
  return SeverityOf(run.Judge(kRule));
}

TEST(LowGpuUtilization, FiresAtLittleUseAndRemarksAtHalf) {
  EXPECT_EQ(SeverityAt(0.1), "warning");
  EXPECT_EQ(SeverityAt(0.4), "info");
  EXPECT_EQ(SeverityAt(0.6), "none");
}

TEST(LowGpuUtilization, OnlyRemarksWhereAnotherRuleGivesTheReason) {
  EXPECT_EQ(SeverityAt(0.1, 0.08), "info");
  EXPECT_EQ(SeverityAt(0.1, 0, 0.001), "info");
}

TEST(LowGpuUtilization, WarmUpAndIdleStretchesAreLeftOut) {
  TestRun run(45);
  run.Series(run.Gpu(0), model::gpu::kUtilization, 1, [](double t) {
    return t < 11.5 ? 0.05 : t < 26 ? 0.9 : 0;
  });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(LowGpuUtilization, CannotJudgeWithoutUtilisation) {
  TestRun run(45);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
