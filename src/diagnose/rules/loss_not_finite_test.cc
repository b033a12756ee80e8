// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

using model::EventKind;

const RuleDef& kRule = rules::kLossNotFinite;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

double ValueOf(const model::Evidence& evidence, std::string_view name) {
  for (const auto& [key, value] : evidence.values) {
    if (key == name) return value;
  }
  return kNan;
}

TEST(LossNotFinite, CriticalFromTheFirstStepOnWhenItStaysSo) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kPower, 1, 400);
  run.Train({.loss = [](int step) { return step < 150 ? 2.0 + step * 0.01 : kNan; }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(findings[0].rank, 0);
  ASSERT_EQ(findings[0].evidence.size(), 2U);
  const model::Evidence& evidence = findings[0].evidence[0];
  EXPECT_EQ(evidence.series, "rank0 loss");
  EXPECT_EQ(evidence.steps, std::vector<int64_t>{151});
  EXPECT_NEAR(ValueOf(evidence, "before_last"), 3.49, 1e-9);
  EXPECT_EQ(ValueOf(evidence, "not_finite_values"), 250);
  EXPECT_EQ(ValueOf(findings[0].evidence[1], "power_w"), 400);
  EXPECT_NEAR(findings[0].lost_gpu_s.value_or(0), 24.9, 0.2);
  EXPECT_NE(findings[0].summary.en.find("step 151"), std::string::npos);
}

TEST(LossNotFinite, LooksAtTheGpuOnlyWhileItWasRecorded) {
  TestRun run(20);
  run.Constant(run.Gpu(0), model::gpu::kPower, 1, 400);
  run.Train({.epochs = 1, .loss = [](int) { return kNan; }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  ASSERT_EQ(findings[0].evidence.size(), 2U);
  const model::Interval loss = findings[0].evidence[0].interval;
  const model::Interval gpu = findings[0].evidence[1].interval;
  // The first step ends 1.6 s into the run, so that ten seconds before it are not there.
  EXPECT_NEAR(static_cast<double>(loss.begin_ns - gpu.begin_ns) / 1e9, 1.6, 0.2);
}

TEST(LossNotFinite, InfinityCountsAsWellAndALastStepIsEnough) {
  TestRun run(60);
  run.Train({.loss = [](int step) { return step < 399 ? 1.0 : kInf; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "critical");
}

TEST(LossNotFinite, SilentWhereEveryLossIsFinite) {
  TestRun run(60);
  run.Train({.loss = [](int step) { return 1e30 / (step + 1); }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(LossNotFinite, StepsThatTellNoLossAreNoNan) {
  TestRun run(60);
  run.Train({});
  for (int i = 0; i < 5; ++i) {
    run.Event(2 + i, EventKind::kScalar, 0, {}, {{"scalar.loss", 1.0}});
  }
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(LossNotFinite, OneSkippedStepIsAWarning) {
  TestRun run(60);
  run.Train({.loss = [](int step) { return step == 200 ? kNan : 1.0; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(LossNotFinite, OverflowsOfALossScaleAreOnlyRemarkedOn) {
  TestRun run(60);
  run.Train({.loss = [](int step) { return step == 200 ? kInf : 1.0; }});
  run.Event(30, EventKind::kScalar, 0, {}, {{"scalar.loss_scale", 32768.0}});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(LossNotFinite, NotYetComputedIsNoFault) {
  TestRun run(60);
  run.Train({.loss = [](int step) { return step < 20 ? kNan : 1.0; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(LossNotFinite, LossesToldAtSomeStepsOnlyAreNoFault) {
  TestRun run(60);
  run.Train({.loss = [](int step) { return step % 10 == 9 ? 1.0 : kNan; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
  TestRun left_between(60);
  left_between.Train({.loss = [](int step) { return step % 10 == 5 ? 1.0 : kNan; }});
  EXPECT_EQ(SeverityOf(left_between.Judge(kRule)), "info");
}

TEST(LossNotFinite, OtherScalarsAreInfoAndAValidationLossAWarning) {
  TestRun metric(60);
  metric.Train({.loss = [](int) { return 1.0; }});
  metric.Event(30, EventKind::kScalar, 0, {}, {{"scalar.grad_norm", kInf}});
  EXPECT_EQ(SeverityOf(metric.Judge(kRule)), "info");
  TestRun validation(60);
  validation.Train({.loss = [](int) { return 1.0; }});
  validation.Event(30, EventKind::kEpochEnd, 0, {}, {{"scalar.val_loss", kNan}});
  EXPECT_EQ(SeverityOf(validation.Judge(kRule)), "warning");
}

TEST(LossNotFinite, NamesEachLossOfAnAdversarialTraining) {
  TestRun run(60);
  run.Train({});
  for (int i = 0; i < 20; ++i) {
    run.Event(2 + i, EventKind::kScalar, 0, {},
              {{"scalar.loss_d", i < 10 ? 0.5 : kNan}, {"scalar.loss_g", i < 12 ? 0.5 : kInf}});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_NE(findings[0].summary.en.find("loss_d"), std::string::npos);
  EXPECT_NE(findings[0].summary.en.find("also loss_g"), std::string::npos);
}

TEST(LossNotFinite, NamesTheRankThatTurnedFirst) {
  TestRun run(60);
  for (int rank = 0; rank < 4; ++rank) {
    const int from = rank == 2 ? 200 : 201;
    run.Train({.rank = rank, .loss = [from](int step) { return step < from ? 1.0 : kNan; }});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(findings[0].rank, 2);
  EXPECT_NE(findings[0].summary.en.find("4 of 4 ranks"), std::string::npos);
  EXPECT_EQ(findings[0].evidence.size(), 3U);
}

TEST(LossNotFinite, NamesNoRankWhereAllTurnTogether) {
  TestRun run(60);
  for (int rank = 0; rank < 2; ++rank) {
    run.Train({.rank = rank, .loss = [](int step) { return step < 200 ? 1.0 : kNan; }});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(findings[0].rank, std::nullopt);
}

TEST(LossNotFinite, CannotJudgeWithoutScalars) {
  TestRun run(60);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
