// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kBurstyGpu;

// Busy in `busy` of every ten samples.
std::string SeverityAt(int busy, double wait_s = 0) {
  TestRun run(45);
  run.Series(run.Gpu(0), model::gpu::kUtilization, 0.2,
             [=](double t) { return static_cast<int>(t * 5 + 0.5) % 10 < busy ? 0.9 : 0.02; });
  run.Train({.data_wait_s = [=](int) { return wait_s; }});
  return SeverityOf(run.Judge(kRule));
}

TEST(BurstyGpu, FiresOnBurstsAndLulls) { EXPECT_EQ(SeverityAt(5), "warning"); }

TEST(BurstyGpu, OnlyRemarksOnFewLulls) { EXPECT_EQ(SeverityAt(8), "info"); }

TEST(BurstyGpu, IsSilentOnSteadyWork) {
  EXPECT_EQ(SeverityAt(10), "none");
  EXPECT_EQ(SeverityAt(0), "none");
}

TEST(BurstyGpu, OnlyRemarksWhereStepsWaitForData) { EXPECT_EQ(SeverityAt(5, 0.06), "info"); }

TEST(BurstyGpu, LullsBetweenEpochsAreNone) {
  TestRun run(80);
  run.Series(run.Gpu(0), model::gpu::kUtilization, 0.5, [](double t) {
    double at_s = 1.5;
    for (int epoch = 0; epoch < 4; ++epoch, at_s += 18) {
      if (t >= at_s && t <= at_s + 10.5) return 0.9;
    }
    return 0.0;
  });
  run.Train({.eval_s = 8});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(BurstyGpu, CannotJudgeFewSamples) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 5, 0.5);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

TEST(BurstyGpu, OnlyRemarksBesideRegularStalls) {
  TestRun run(80);
  run.Series(run.Gpu(0), model::gpu::kUtilization, 0.2,
             [](double t) { return static_cast<int>(t * 5 + 0.5) % 10 < 5 ? 0.9 : 0.02; });
  run.Train({.duration_s = [](int step) { return step % 40 == 17 ? 2.0 : 0.1; }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_NE(findings[0].explanation.en.find("periodic_stall"), std::string::npos);
}

}  // namespace
}  // namespace epochmeter::diagnose
