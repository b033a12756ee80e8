// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_metrics.h"
#include "model/host_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kCpuBound;

// A host of ten CPUs of which so many are busy, and the tree uses `cores`.
std::string SeverityAt(double busy_cpus, double cores, double utilization, double wait_s = 0) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, utilization);
  run.Series(run.Host(), model::host::kCpuUser, 1, [=](double t) { return busy_cpus * t; });
  run.Series(run.Host(), model::host::kCpuIdle, 1, [=](double t) { return (10 - busy_cpus) * t; });
  run.Series(run.Tree(), model::host::kTreeCpu, 1, [=](double t) { return cores * t; });
  run.Train({.data_wait_s = [=](int) { return wait_s; }});
  return SeverityOf(run.Judge(kRule));
}

TEST(CpuBound, FiresOnAFullHostWithAGpuAtRest) { EXPECT_EQ(SeverityAt(9.6, 9, 0.2), "warning"); }

TEST(CpuBound, IsSilentWhereTheGpuWorksOrTheCpuRests) {
  EXPECT_EQ(SeverityAt(9.6, 9, 0.9), "none");
  EXPECT_EQ(SeverityAt(3, 3, 0.2), "none");
}

TEST(CpuBound, OnlyRemarksOnOneFullThread) { EXPECT_EQ(SeverityAt(1, 1, 0.2), "info"); }

TEST(CpuBound, OnlyRemarksWhereStepsWaitForData) {
  EXPECT_EQ(SeverityAt(9.6, 9, 0.2, 0.06), "info");
}

TEST(CpuBound, CannotJudgeWithoutCpuTimes) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.2);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
