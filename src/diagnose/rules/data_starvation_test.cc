// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kDataStarvation;

TEST(DataStarvation, FiresWhereStepsWait) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.1);
  run.Train({.data_wait_s = [](int) { return 0.08; }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 0);
  EXPECT_NEAR(findings[0].evidence.at(0).values.at(0).second, 0.8, 1e-9);
  EXPECT_GT(findings[0].lost_gpu_s.value_or(0), 20);
}

TEST(DataStarvation, IsSilentWhereDataIsReady) {
  TestRun run(60);
  run.Train({.data_wait_s = [](int) { return 0.001; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(DataStarvation, FirstEpochAndFirstBatchesAreWarmUp) {
  TestRun run(60);
  run.Train({.data_wait_s = [](int step) { return step < 100 || step % 100 == 0 ? 0.1 : 0.0; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(DataStarvation, OnlyRemarksWhereTheGpuIsBusyAllTheSame) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.97);
  run.Train({.data_wait_s = [](int) { return 0.08; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(DataStarvation, TheWorstOfManyRanksSpeaksForAll) {
  TestRun run(60);
  for (int32_t rank = 0; rank < 12; ++rank) {
    run.Train({.rank = rank, .gpus = std::to_string(rank), .data_wait_s = [rank](int) {
                 return rank == 7 ? 0.06 : 0.04;
               }});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 7);
  EXPECT_NE(findings[0].explanation.en.find("11 other ranks"), std::string::npos);
}

TEST(DataStarvation, CannotJudgeWithoutWaitingTimes) {
  TestRun run(60);
  run.Train({.data_wait_s = {}});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
