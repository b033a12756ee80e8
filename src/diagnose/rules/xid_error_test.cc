// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/rules/xid_table.h"
#include "diagnose/test_run.h"
#include "model/gpu_health_metrics.h"

namespace epochmeter::diagnose {
namespace {

using model::EventKind;

const RuleDef& kRule = rules::kXidError;

void AddXid(double t_s, int64_t gpu, int64_t xid, TestRun* run) {
  run->Event(t_s, EventKind::kSource, {}, "gpu.xid",
             {{"uuid", "GPU-" + std::to_string(gpu)}, {"gpu", gpu}, {"xid", xid}});
}

TEST(XidError, FaultOfTheProgramIsAWarningWhileTheTrainingGoesOn) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kXids, 1, 0);
  run.Train({});
  AddXid(20.05, 0, 13, &run);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 0);
  EXPECT_EQ(findings[0].rank, 0);
  EXPECT_NE(findings[0].summary.en.find("XID 13"), std::string::npos);
  EXPECT_NE(findings[0].advice.at(0).text.en.find("compute-sanitizer"), std::string::npos);
  EXPECT_EQ(findings[0].evidence.at(0).steps.size(), 1U);
}

TEST(XidError, CriticalWhereTheTrainingMadeNoStepAfterwards) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kXids, 1, 0);
  const double end_s = run.Train({.ends = false});
  AddXid(end_s + 0.01, 0, 31, &run);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "critical");
}

TEST(XidError, AnErrorAfterTheEndOfTheTrainingDidNotEndIt) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kXids, 1, 0);
  const double end_s = run.Train({});
  AddXid(end_s + 1, 0, 31, &run);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(XidError, CleanUpAfterAKillIsOnlyInfo) {
  TestRun run(60);
  const double end_s = run.Train({.ends = false});
  AddXid(end_s + 0.1, 0, 45, &run);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(XidError, OneFindingACodeOverAllGpus) {
  TestRun run(60);
  for (int gpu = 0; gpu < 8; ++gpu) {
    run.Gpu(gpu);
    AddXid(10 + gpu, gpu, 74, &run);
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, std::nullopt);
  EXPECT_NE(findings[0].summary.en.find("8 GPUs"), std::string::npos);
}

TEST(XidError, ALostGpuIsSaidOnceBesideItsXid) {
  TestRun run(60);
  run.Gpu(1);
  run.Train({.gpus = "1", .ends = false});
  AddXid(30, 1, 79, &run);
  run.Event(31, EventKind::kSource, {}, "gpu.lost",
            {{"uuid", "GPU-1"}, {"gpu", int64_t{1}}, {"detail", "GPU is lost (15)"}});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(findings[0].gpu, 1);
}

TEST(XidError, ALostGpuIsCriticalUnlessItCameBack) {
  const std::vector<model::EventField> fields = {{"uuid", "GPU-0"}, {"gpu", int64_t{0}}};
  TestRun lost(60);
  lost.Gpu(0);
  lost.Event(30, EventKind::kSource, {}, "gpu.lost", fields);
  EXPECT_EQ(SeverityOf(lost.Judge(kRule)), "critical");
  TestRun back(60);
  back.Gpu(0);
  back.Event(30, EventKind::kSource, {}, "gpu.lost", fields);
  back.Event(33, EventKind::kSource, {}, "gpu.back", fields);
  EXPECT_EQ(SeverityOf(back.Judge(kRule)), "warning");
}

TEST(XidError, AnUnknownCodeIsNamedAsSuch) {
  TestRun run(60);
  AddXid(10, 0, 9999, &run);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NE(findings[0].summary.en.find("9999"), std::string::npos);
  EXPECT_EQ(MeaningOf(9999).cause, XidCause::kUnknown);
}

TEST(XidError, SilentWhereNoneCameOrOnlyBefore) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kXids, 1, 0);
  run.Event(1, EventKind::kSource, {}, "gpu.xid_before",
            {{"uuid", "GPU-0"}, {"gpu", int64_t{0}}, {"last_xid", int64_t{79}}});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(XidError, CannotJudgeWithoutTheDriversEvents) {
  TestRun run(60);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
