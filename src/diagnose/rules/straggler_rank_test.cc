// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kStragglerRank;

// Ranks that step together, rank r on gpu r with this utilisation.
void Together(TestRun* run, const std::vector<double>& utilization) {
  for (size_t i = 0; i < utilization.size(); ++i) {
    const auto rank = static_cast<int32_t>(i);
    run->Constant(run->Gpu(rank), model::gpu::kUtilization, 1, utilization[i]);
    run->Constant(run->Gpu(rank), model::gpu::kPower, 1, 210);
    run->Train({.rank = rank, .gpus = std::to_string(rank)});
  }
}

TEST(StragglerRank, NamesTheIdlerOfTwoThatStepTogether) {
  TestRun run(45);
  Together(&run, {0.81, 0.17});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 1);
  EXPECT_EQ(findings[0].gpu, 1);
  EXPECT_GT(findings[0].gain_ratio.value_or(0), 0.3);
}

TEST(StragglerRank, NamesTheIdlerOfEight) {
  TestRun run(45);
  Together(&run, {0.9, 0.92, 0.88, 0.9, 0.3, 0.91, 0.9, 0.9});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 4);
}

TEST(StragglerRank, IsSilentOnRanksThatAreBusyAlike) {
  TestRun run(45);
  Together(&run, {0.57, 0.66});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StragglerRank, UtilisationThatTakesTurnsIsNoStraggler) {
  TestRun run(45);
  for (int32_t rank = 0; rank < 2; ++rank) {
    run.Series(run.Gpu(rank), model::gpu::kUtilization, 1, [rank](double t) {
      return (static_cast<int>(t / 5) + rank) % 2 == 0 || t > 38 ? 0.9 : 0.5 - 0.1 * rank;
    });
    run.Train({.rank = rank, .gpus = std::to_string(rank)});
  }
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StragglerRank, ARankWithASmallBatchIsAnImbalance) {
  TestRun run(45);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.9);
  run.Constant(run.Gpu(1), model::gpu::kUtilization, 1, 0.5);
  run.Train({.rank = 0, .gpus = "0", .batch_size = 128});
  run.Train({.rank = 1, .gpus = "1", .batch_size = 8});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StragglerRank, AGpuThatDrawsFarLessHasLessToDo) {
  TestRun run(45);
  const std::vector<double> utilization = {0.44, 0.86};
  const std::vector<double> power_w = {231, 505};
  for (int32_t rank = 0; rank < 2; ++rank) {
    run.Constant(run.Gpu(rank), model::gpu::kUtilization, 1, utilization[rank]);
    run.Constant(run.Gpu(rank), model::gpu::kPower, 1, power_w[rank]);
    run.Train({.rank = rank, .gpus = std::to_string(rank)});
  }
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StragglerRank, NamesTheRankThatWaitsForItsData) {
  TestRun run(45);
  for (int32_t rank = 0; rank < 4; ++rank) {
    run.Train({.rank = rank, .gpus = std::to_string(rank), .data_wait_s = [rank](int) {
                 return rank == 2 ? 0.05 : 0.001;
               }});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 2);
  EXPECT_NEAR(findings[0].gain_ratio.value_or(0), 0.49 * 30 / 45, 0.05);
}

TEST(StragglerRank, NamesTheRankThatDoesNotCommunicateForLong) {
  TestRun run(45);
  for (int32_t rank = 0; rank < 3; ++rank) {
    run.Train({.rank = rank, .gpus = std::to_string(rank), .data_wait_s = {}});
    for (int i = 0; i < 400; ++i) {
      const double t_s = 1.5 + i * 0.1;
      run.Event(t_s + 0.02, model::EventKind::kPhaseBegin, rank, "comm");
      run.Event(t_s + (rank == 0 ? 0.03 : 0.08), model::EventKind::kPhaseEnd, rank, "comm");
    }
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 0);
}

TEST(StragglerRank, ComparesStepTimesWhereTheyDiffer) {
  TestRun run(100);
  for (int32_t rank = 0; rank < 4; ++rank) {
    run.Train({.rank = rank, .gpus = std::to_string(rank), .duration_s = [rank](int) {
                 return rank == 3 ? 0.2 : 0.1;
               }});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 3);
  EXPECT_NEAR(findings[0].lost_gpu_s.value_or(0), 30, 1);
}

TEST(StragglerRank, OnlyRemarksOnALittleSlowness) {
  TestRun run(100);
  for (int32_t rank = 0; rank < 4; ++rank) {
    run.Train({.rank = rank, .gpus = std::to_string(rank), .duration_s = [rank](int) {
                 return rank == 3 ? 0.117 : 0.1;
               }});
  }
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(StragglerRank, ASlowFirstEpochIsWarmUp) {
  TestRun run(100);
  for (int32_t rank = 0; rank < 4; ++rank) {
    run.Train({.rank = rank, .gpus = std::to_string(rank), .duration_s = [rank](int step) {
                 return rank == 3 && step < 100 ? 0.3 : 0.1;
               }});
  }
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StragglerRank, CannotJudgeOneRank) {
  TestRun run(45);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

TEST(StragglerRank, CannotJudgeWhereNothingTellsWhoWaits) {
  TestRun run(45);
  run.Train({.rank = 0, .gpus = "0", .data_wait_s = {}});
  run.Train({.rank = 1, .gpus = "1", .data_wait_s = {}});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
