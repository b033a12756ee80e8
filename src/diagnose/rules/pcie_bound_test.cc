// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_link_metrics.h"

namespace epochmeter::diagnose {
namespace {

namespace gpu = model::gpu;
const RuleDef& kRule = rules::kPcieBound;

// A link that can be PCIe 4.0 x16, and what it is when the GPU works and when it does not.
void AddLink(int32_t index, double working_generation, double width, TestRun* run) {
  const model::EntityId entity = run->Gpu(index);
  run->Constant(entity, gpu::kPcieMaxGeneration, 10, 4);
  run->Constant(entity, gpu::kPcieMaxWidth, 10, 16);
  run->Constant(entity, gpu::kPcieWidth, 10, width);
  run->Series(entity, gpu::kUtilization, 1, [](double t_s) { return t_s > 5 ? 0.9 : 0.0; });
  run->Series(entity, gpu::kPcieGeneration, 10,
              [=](double t_s) { return t_s > 5 ? working_generation : 1; });
}

TEST(PcieBound, ALinkBelowItsBestUnderLoadIsAWarning) {
  TestRun run(60);
  AddLink(1, 4, 8, &run);
  run.Train({.gpus = "1"});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 1);
  EXPECT_NE(findings[0].summary.en.find("PCIe 4.0 x8 under load, 50 %"), std::string::npos);
}

TEST(PcieBound, AnIdleLinkSlowsDownOnPurpose) {
  TestRun run(60);
  AddLink(0, 4, 16, &run);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(PcieBound, AGpuThatNeverWorkedSaysNothingOfItsLink) {
  TestRun run(60);
  const model::EntityId entity = run.Gpu(0);
  run.Constant(entity, gpu::kPcieMaxGeneration, 10, 5);
  run.Constant(entity, gpu::kPcieMaxWidth, 10, 16);
  run.Constant(entity, gpu::kPcieGeneration, 10, 1);
  run.Constant(entity, gpu::kPcieWidth, 10, 16);
  run.Constant(entity, gpu::kUtilization, 1, 0);
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

TEST(PcieBound, ReplaysAreJudgedByTheRateThatTheLinkMayHave) {
  TestRun few(120);
  AddLink(0, 4, 16, &few);
  few.Series(few.Gpu(0), gpu::kPcieReplays, 10, [](double t_s) { return 500 + t_s / 60 * 15; });
  EXPECT_EQ(SeverityOf(few.Judge(kRule)), "none");
  TestRun many(120);
  AddLink(0, 4, 16, &many);
  many.Series(many.Gpu(0), gpu::kPcieReplays, 10, [](double t_s) { return 500 + t_s / 60 * 40; });
  EXPECT_EQ(SeverityOf(many.Judge(kRule)), "warning");
}

TEST(PcieBound, AFullLinkIsAFaultOnlyWhereTheSmsWait) {
  for (const bool idle : {true, false}) {
    TestRun run(60);
    AddLink(0, 4, 16, &run);
    run.Constant(run.Gpu(0), gpu::kPcieReceiveRate, 1, 27e9);
    run.Constant(run.Gpu(0), gpu::kSmActive, 1, idle ? 0.2 : 0.8);
    run.Train({});
    const auto findings = run.Judge(kRule);
    ASSERT_EQ(SeverityOf(findings), idle ? "warning" : "none");
    EXPECT_EQ(idle ? findings[0].advice.size() : 3U, 3U);
  }
}

TEST(PcieBound, CannotJudgeWithoutTheLink) {
  TestRun run(60);
  run.Constant(run.Gpu(0), gpu::kUtilization, 1, 0.9);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
