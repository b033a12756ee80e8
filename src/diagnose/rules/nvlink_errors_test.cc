// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_link_metrics.h"

namespace epochmeter::diagnose {
namespace {

namespace gpu = model::gpu;
const RuleDef& kRule = rules::kNvlinkErrors;

void AddRise(int32_t index, const model::MetricDef& metric, double by, TestRun* run) {
  run->Series(run->Gpu(index), metric, 5, [by](double t_s) { return t_s < 20 ? 3 : 3 + by; });
}

TEST(NvlinkErrors, ALinkThatHadToBeBroughtUpAgainIsAWarning) {
  TestRun run(60);
  AddRise(2, gpu::kNvlinkRecovery, 1, &run);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 2);
  EXPECT_EQ(findings[0].evidence.at(0).series, "gpu2 nvlink_recovery_errors_per_s");
}

TEST(NvlinkErrors, ALinkThatStaysDownIsCritical) {
  TestRun run(60);
  AddRise(0, gpu::kNvlinkLost5, 1, &run);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "critical");
}

TEST(NvlinkErrors, FewDamagedPacketsAreInfoManyAWarning) {
  TestRun few(60);
  AddRise(0, gpu::kNvlinkCrcFlit, 20, &few);
  EXPECT_EQ(SeverityOf(few.Judge(kRule)), "info");
  TestRun many(60);
  AddRise(0, gpu::kNvlinkCrcFlit, 100000, &many);
  EXPECT_EQ(SeverityOf(many.Judge(kRule)), "warning");
}

TEST(NvlinkErrors, OneFindingForAllGpusOfAKind) {
  TestRun run(60);
  for (int i = 0; i < 8; ++i) AddRise(i, gpu::kNvlinkReplay, 5 + i, &run);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, std::nullopt);
  EXPECT_NE(findings[0].summary.en.find("8 GPUs (worst: gpu7)"), std::string::npos);
}

TEST(NvlinkErrors, OldCountsAndIdleLinksAreNoFault) {
  TestRun run(60);
  run.Constant(run.Gpu(0), gpu::kNvlinkReplay, 5, 900);
  run.Constant(run.Gpu(0), gpu::kNvlinkLinks, 5, 18);
  run.Constant(run.Gpu(0), gpu::kNvlinkActive, 5, 18);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(NvlinkErrors, ALinkThatGoesDownIsAWarningOneThatNeverWasUpInfo) {
  TestRun goes(60);
  goes.Constant(goes.Gpu(0), gpu::kNvlinkLinks, 5, 18);
  goes.Series(goes.Gpu(0), gpu::kNvlinkActive, 5, [](double t_s) { return t_s < 30 ? 18 : 17; });
  EXPECT_EQ(SeverityOf(goes.Judge(kRule)), "warning");
  TestRun never(60);
  never.Constant(never.Gpu(0), gpu::kNvlinkLinks, 5, 18);
  never.Constant(never.Gpu(0), gpu::kNvlinkActive, 5, 12);
  EXPECT_EQ(SeverityOf(never.Judge(kRule)), "info");
}

TEST(NvlinkErrors, BytesAloneCannotBeJudged) {
  TestRun run(60);
  run.Series(run.Gpu(0), gpu::kNvlinkTransmit, 1, [](double t_s) { return t_s * 1e9; });
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
