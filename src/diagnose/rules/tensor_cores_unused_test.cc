// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kTensorCoresUnused;

std::string SeverityAt(double sm, double tensor, double fp32, double fp64 = 0) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kSmActive, 1, sm);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.9);
  run.Constant(run.Gpu(0), model::gpu::kTensorActive, 1, tensor);
  run.Constant(run.Gpu(0), model::gpu::kFp32Active, 1, fp32);
  run.Constant(run.Gpu(0), model::gpu::kFp64Active, 1, fp64);
  run.Train({});
  return SeverityOf(run.Judge(kRule));
}

TEST(TensorCoresUnused, FiresWhereSinglePrecisionDoesAllTheWork) {
  EXPECT_EQ(SeverityAt(0.7, 0, 0.4), "warning");
}

TEST(TensorCoresUnused, IsSilentWhereTheyWork) { EXPECT_EQ(SeverityAt(0.7, 0.06, 0.02), "none"); }

TEST(TensorCoresUnused, IsSilentOnAGpuWithLittleToDo) {
  EXPECT_EQ(SeverityAt(0.01, 0, 0.001), "none");
}

TEST(TensorCoresUnused, OnlyRemarksOnDoublePrecision) {
  EXPECT_EQ(SeverityAt(0.7, 0, 0.01, 0.4), "info");
}

TEST(TensorCoresUnused, CannotJudgeWithoutPerformanceMonitoring) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.9);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
