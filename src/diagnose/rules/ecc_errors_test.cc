// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_health_metrics.h"

namespace epochmeter::diagnose {
namespace {

namespace gpu = model::gpu;
const RuleDef& kRule = rules::kEccErrors;

// A counter that had `before` and rises by `by` at a time.
void AddRise(const model::MetricDef& metric, double before, double by, double at_s, TestRun* run) {
  run->Series(run->Gpu(0), metric, 5,
              [=](double t_s) { return t_s < at_s ? before : before + by; });
}

TEST(EccErrors, AnUncorrectedErrorIsAWarningWhileTheTrainingGoesOn) {
  TestRun run(60);
  AddRise(gpu::kEccUncorrectedVolatile, 3, 1, 20, &run);
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 0);
  EXPECT_EQ(findings[0].evidence.at(0).series, "gpu0 ecc_uncorrected_volatile_errors_per_s");
  EXPECT_EQ(findings[0].evidence.at(0).values.at(0).second, 1);
}

TEST(EccErrors, CriticalWhereNoStepFollowed) {
  TestRun run(60);
  AddRise(gpu::kEccUncorrectedVolatile, 0, 1, 55, &run);
  run.Train({.ends = false});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "critical");
}

TEST(EccErrors, OldCountsAreNoFault) {
  TestRun run(60);
  run.Constant(run.Gpu(0), gpu::kEccUncorrectedVolatile, 5, 7);
  run.Constant(run.Gpu(0), gpu::kEccCorrectedVolatile, 5, 90000);
  run.Constant(run.Gpu(0), gpu::kRemappedUncorrected, 5, 12);
  AddRise(gpu::kEccCorrectedAggregate, 10, 5000, 20, &run);
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(EccErrors, CorrectedErrorsAreInfoAndAStormIsAWarning) {
  TestRun few(60);
  AddRise(gpu::kEccCorrectedVolatile, 0, 2, 20, &few);
  EXPECT_EQ(SeverityOf(few.Judge(kRule)), "none");
  TestRun some(60);
  AddRise(gpu::kEccCorrectedVolatile, 0, 40, 20, &some);
  EXPECT_EQ(SeverityOf(some.Judge(kRule)), "info");
  TestRun storm(60);
  AddRise(gpu::kEccCorrectedVolatile, 0, 5000, 20, &storm);
  EXPECT_EQ(SeverityOf(storm.Judge(kRule)), "warning");
}

TEST(EccErrors, RowsThatWereReplacedOrCannotBe) {
  TestRun replaced(60);
  AddRise(gpu::kRemappedUncorrected, 1, 1, 20, &replaced);
  EXPECT_EQ(SeverityOf(replaced.Judge(kRule)), "warning");
  TestRun failed(60);
  failed.Constant(failed.Gpu(0), gpu::kRemapFailed, 5, 1);
  EXPECT_EQ(SeverityOf(failed.Judge(kRule)), "warning");
  TestRun pending(60);
  pending.Constant(pending.Gpu(0), gpu::kRemapPending, 5, 1);
  EXPECT_EQ(SeverityOf(pending.Judge(kRule)), "info");
}

TEST(EccErrors, AnEventOfTheDriverIsEnough) {
  TestRun run(60);
  run.Gpu(0);
  run.Event(20, model::EventKind::kSource, {}, "gpu.ecc_storm",
            {{"uuid", "GPU-0"}, {"gpu", int64_t{0}}});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(EccErrors, CannotJudgeWithoutCounters) {
  TestRun run(60);
  run.Gpu(0);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
