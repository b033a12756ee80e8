// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kStepOutlier;

// Noise without a generator: a fixed, uneven sequence around 0.1 s.
double Noisy(int step) { return 0.1 + 0.01 * std::sin(step * 12.9898); }

bool IsSlow(int step) { return step == 113 || step == 158 || step == 171 || step == 302; }

TEST(StepOutlier, WarnsWhereAFewStepsTakeAShareOfAllTime) {
  TestRun run(120);
  run.Train({.duration_s = [](int step) { return IsSlow(step) ? 2.0 : Noisy(step); }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].evidence.at(0).steps.size(), 4U);
  EXPECT_NE(findings[0].explanation.en.find("nothing that was recorded (4)"), std::string::npos);
}

TEST(StepOutlier, NamesWaitingForData) {
  TestRun run(120);
  run.Train({.duration_s = [](int step) { return IsSlow(step) ? 2.0 : Noisy(step); },
             .data_wait_s = [](int step) { return IsSlow(step) ? 1.9 : 0.0; }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].explanation.en.find("waiting for data (4)"), std::string::npos);
}

TEST(StepOutlier, OneSlowStepIsOnlyRemarkedOn) {
  TestRun run(120);
  run.Train({.duration_s = [](int step) { return step == 222 ? 3.0 : Noisy(step); }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(StepOutlier, WarmUpAndNoiseAreNone) {
  TestRun run(120);
  run.Train({.duration_s = [](int step) {
    return step < 100 || step % 100 == 0 ? 1.0 * Noisy(step) * 8 : Noisy(step);
  }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StepOutlier, TwoKindsOfStepsAreNoOutliers) {
  TestRun run(300);
  run.Train({.duration_s = [](int step) { return step % 4 == 0 ? 0.5 : 0.1; }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(StepOutlier, CannotJudgeAFewSteps) {
  TestRun run(60);
  run.Train({.epochs = 2, .steps = 15});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
