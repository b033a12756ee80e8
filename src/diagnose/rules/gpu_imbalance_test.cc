// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kGpuImbalance;

struct Load {
  double utilization = 0.6, sm = 0.4, power = 340, batch = 128, memory = 5e9;
};

void Ranks(TestRun* run, const std::vector<Load>& loads) {
  for (size_t i = 0; i < loads.size(); ++i) {
    const auto rank = static_cast<int32_t>(i);
    run->Constant(run->Gpu(rank), model::gpu::kUtilization, 1, loads[i].utilization);
    run->Constant(run->Gpu(rank), model::gpu::kSmActive, 1, loads[i].sm);
    run->Constant(run->Gpu(rank), model::gpu::kPower, 1, loads[i].power);
    run->Constant(run->Gpu(rank), model::gpu::kMemoryUsed, 1, loads[i].memory);
    run->Train({.rank = rank, .gpus = std::to_string(rank), .batch_size = loads[i].batch});
  }
}

TEST(GpuImbalance, NamesTheLighterOfTwo) {
  TestRun run(45);
  Ranks(&run, {{}, {.utilization = 0.52, .sm = 0.12, .power = 175, .batch = 8}});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 1);
  EXPECT_EQ(findings[0].gpu, 1);
  EXPECT_GT(findings[0].lost_gpu_s.value_or(0), 10);
}

TEST(GpuImbalance, NamesTheOneOfFourThatDoesMost) {
  TestRun run(45);
  const Load light{.sm = 0.15, .power = 180};
  Ranks(&run, {{.sm = 0.8, .power = 600}, light, light, light});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 0);
}

TEST(GpuImbalance, IsSilentOnGpusThatWorkAlike) {
  TestRun run(45);
  Ranks(&run, {{.utilization = 0.57, .sm = 0.35}, {.utilization = 0.66, .sm = 0.37}});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(GpuImbalance, WaitingInACollectiveAtTheSamePowerIsNone) {
  TestRun run(45);
  Ranks(&run, {{.utilization = 0.85, .sm = 0.26, .power = 212},
               {.utilization = 0.18, .sm = 0.13, .power = 210}});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(GpuImbalance, BatchSizesAloneWillDo) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.6);
  run.Constant(run.Gpu(1), model::gpu::kUtilization, 1, 0.6);
  run.Train({.rank = 0, .gpus = "0", .batch_size = 128});
  run.Train({.rank = 1, .gpus = "1", .batch_size = 32});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(GpuImbalance, ASmallerBatchOfLargerSamplesIsNone) {
  TestRun run(45);
  Ranks(&run, {{.sm = 0.5, .batch = 128}, {.sm = 0.49, .batch = 32}});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(GpuImbalance, OnlyRemarksOnMemory) {
  TestRun run(45);
  Ranks(&run, {{.memory = 70e9}, {.memory = 20e9}});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_EQ(findings[0].gpu, 0);
}

TEST(GpuImbalance, TheFirstEpochIsWarmUp) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kSmActive, 1, 0.6);
  run.Series(run.Gpu(1), model::gpu::kSmActive, 1, [](double t) { return t < 11.5 ? 0.03 : 0.6; });
  run.Train({.rank = 0, .gpus = "0"});
  run.Train({.rank = 1, .gpus = "1"});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(GpuImbalance, CannotJudgeOneGpuInUse) {
  TestRun run(45);
  Ranks(&run, {{}, {.utilization = 0, .sm = 0}});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
