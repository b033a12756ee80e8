// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_metrics.h"
#include "model/host_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kIoBound;

// A host of one CPU that waits for storage in so much of its time.
std::string SeverityAt(double iowait, double utilization, double wait_s = 0) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, utilization);
  run.Series(run.Host(), model::host::kCpuIowait, 1, [=](double t) { return iowait * t; });
  run.Series(run.Host(), model::host::kCpuIdle, 1, [=](double t) { return (1 - iowait) * t; });
  run.Series(run.Host(), model::host::kCpuUser, 1, [](double) { return 5; });
  run.Train({.data_wait_s = [=](int) { return wait_s; }});
  return SeverityOf(run.Judge(kRule));
}

TEST(IoBound, FiresWhereStorageIsWaitedForAndTheGpuRests) {
  EXPECT_EQ(SeverityAt(0.7, 0.1), "warning");
}

TEST(IoBound, IsSilentWhereTheGpuWorksOrStorageRests) {
  EXPECT_EQ(SeverityAt(0.7, 0.9), "none");
  EXPECT_EQ(SeverityAt(0.1, 0.1), "none");
}

TEST(IoBound, OnlyRemarksWhereStepsWaitForData) { EXPECT_EQ(SeverityAt(0.7, 0.1, 0.06), "info"); }

TEST(IoBound, CannotJudgeWithoutPressureAndIowait) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.1);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
