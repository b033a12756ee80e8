// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tuple>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kLowSmActivity;

void Gpu(TestRun* run, double utilization, double sm, int32_t gpu = 0) {
  run->Constant(run->Gpu(gpu), model::gpu::kUtilization, 1, utilization);
  run->Constant(run->Gpu(gpu), model::gpu::kSmActive, 1, sm);
}

TEST(LowSmActivity, FiresWhereTinyKernelsAreLaunched) {
  TestRun run(45);
  Gpu(&run, 0.13, 0.001);
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 0);
  EXPECT_NE(findings[0].explanation.en.find("launch"), std::string::npos);
}

TEST(LowSmActivity, FiresWhereAGpuOnlyLooksBusy) {
  TestRun run(45);
  Gpu(&run, 0.97, 0.007);
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NE(findings[0].explanation.en.find("looks busier"), std::string::npos);
}

TEST(LowSmActivity, IsSilentAtModestWork) {
  TestRun run(45);
  Gpu(&run, 0.4, 0.3);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(LowSmActivity, OnlyRemarksOnASmallNetwork) {
  TestRun run(45);
  Gpu(&run, 0.22, 0.11);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(LowSmActivity, WaitingForDataIsLeftToItsRule) {
  TestRun run(45);
  Gpu(&run, 0.03, 0.01);
  run.Train({.data_wait_s = [](int) { return 0.05; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(LowSmActivity, IdleStretchesAreLeftToTheirRule) {
  TestRun run(45);
  run.Series(run.Gpu(0), model::gpu::kUtilization, 1, [](double t) { return t < 20 ? 0.9 : 0; });
  run.Series(run.Gpu(0), model::gpu::kSmActive, 1, [](double t) { return t < 20 ? 0.7 : 0; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(LowSmActivity, WarmUpIsNoFault) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.5);
  run.Series(run.Gpu(0), model::gpu::kSmActive, 1, [](double t) { return t < 11.5 ? 0.01 : 0.6; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(LowSmActivity, ARankThatWaitsForAnotherIsNoFaultOfTheKernels) {
  TestRun run(45);
  Gpu(&run, 0.95, 0.05, 0);
  Gpu(&run, 0.9, 0.6, 1);
  run.Train({.rank = 0, .gpus = "0"});
  run.Train({.rank = 1, .gpus = "1"});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(LowSmActivity, WithoutSmActivityPowerIsTheWitness) {
  for (const double power : {120.0, 400.0}) {
    TestRun run(45);
    run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.97);
    run.Constant(run.Gpu(0), model::gpu::kPower, 1, power);
    run.Constant(run.Gpu(0), model::gpu::kPowerLimit, 10, 700);
    run.Train({});
    EXPECT_EQ(SeverityOf(run.Judge(kRule)), power < 200 ? "warning" : "none");
  }
}

TEST(LowSmActivity, CannotJudgeByUtilisationAlone) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.97);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

TEST(LowSmActivity, AFullGpuWithAQuarterOfItsWorkIsWorthAWord) {
  for (const auto& [busy, sm, severity] :
       {std::tuple(0.94, 0.24, "info"), std::tuple(0.8, 0.24, "none"),
        std::tuple(0.97, 0.6, "none"), std::tuple(0.8, 0.6, "none")}) {
    TestRun run(45);
    Gpu(&run, busy, sm);
    run.Train({});
    EXPECT_EQ(SeverityOf(run.Judge(kRule)), severity) << busy << " " << sm;
  }
}

}  // namespace
}  // namespace epochmeter::diagnose
