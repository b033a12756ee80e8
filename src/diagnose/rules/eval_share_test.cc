// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kEvalShare;

std::string SeverityAt(double eval_s) {
  TestRun run(150);
  run.Train({.eval_s = eval_s});
  return SeverityOf(run.Judge(kRule));
}

TEST(EvalShare, FiresWhereEvaluationTakesHalfOfTheTime) {
  TestRun run(150);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.8);
  run.Train({.eval_s = 10});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NEAR(findings[0].evidence.at(0).values.at(1).second, 0.5, 0.01);
  EXPECT_NEAR(findings[0].lost_gpu_s.value_or(0), 40, 0.1);
}

TEST(EvalShare, RemarksAboveTheLowerLimitAndIsSilentBelow) {
  EXPECT_EQ(SeverityAt(2.5), "info");
  EXPECT_EQ(SeverityAt(1), "none");
}

TEST(EvalShare, AnIdleGpuInEvaluationIsWorse) {
  TestRun run(150);
  run.Series(run.Gpu(0), model::gpu::kUtilization, 0.5, [](double t) {
    double at_s = 1.5;
    for (int epoch = 0; epoch < 4; ++epoch, at_s += 12.5) {
      if (t >= at_s && t <= at_s + 10) return 0.9;
    }
    return 0.1;
  });
  run.Train({.eval_s = 2.5});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(EvalShare, TheTestAfterTrainingDoesNotCount) {
  TestRun run(150);
  const double end_s = run.Train({.ends = false});
  run.Event(end_s, model::EventKind::kPhaseBegin, 0, "eval");
  run.Event(end_s + 40, model::EventKind::kPhaseEnd, 0, "eval");
  run.Event(end_s + 41, model::EventKind::kTrainEnd, 0);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(EvalShare, ASlowStartDoesNotHideIt) {
  TestRun run(400);
  run.Train({.duration_s = [](int step) { return step == 0 ? 200 : 0.1; }, .eval_s = 10});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(EvalShare, CannotJudgeWithoutEvaluations) {
  TestRun run(150);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
