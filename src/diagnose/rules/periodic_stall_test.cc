// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kPeriodicStall;

double Noisy(int step) { return 0.1 + 0.01 * std::sin(step * 12.9898); }

double ValueOf(const model::Finding& finding, std::string_view name) {
  for (const auto& [key, value] : finding.evidence.at(0).values) {
    if (key == name) return value;
  }
  return -1;
}

TEST(PeriodicStall, FindsAStallEachFortySteps) {
  TestRun run(300);
  run.Train(
      {.steps = 200, .duration_s = [](int step) { return step % 40 == 17 ? 0.9 : Noisy(step); }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(ValueOf(findings[0], "period_steps"), 40);
}

TEST(PeriodicStall, FindsOneThatIsRegularInTimeOnly) {
  // Steps of two lengths in long stretches, a stall each 12 s or so.
  TestRun run(600);
  double t_s = 0;
  double next_s = 12;
  run.Train({.steps = 400, .duration_s = [&](int step) {
               double duration = (step / 100) % 2 == 0 ? 0.1 : 0.16;
               if (t_s > next_s) {
                 duration += 1.5;
                 next_s += 12;
               }
               t_s += duration;
               return duration;
             }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(ValueOf(findings[0], "period_steps"), -1);
  EXPECT_NEAR(ValueOf(findings[0], "period_s"), 12, 2);
}

TEST(PeriodicStall, IrregularOnesAreNone) {
  TestRun run(300);
  run.Train({.steps = 200, .duration_s = [](int step) {
               const bool slow = step == 221 || step == 263 || step == 391 || step == 402 ||
                                 step == 507 || step == 660;
               return slow ? 1.5 : Noisy(step);
             }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(PeriodicStall, FirstStepsOfEpochsAreNone) {
  TestRun run(300);
  run.Train({.epochs = 12, .steps = 50, .duration_s = [](int step) {
               return step % 50 == 0 ? 2.0 : Noisy(step);
             }});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(PeriodicStall, CannotJudgeWithoutDurations) {
  TestRun run(60);
  run.Train({.duration_s = {}});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
