// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kSlowStart;

TEST(SlowStart, RemarksOnAStartThatIsAGoodPartOfTheRun) {
  TestRun run(200);
  run.Train({.begin_s = 90});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_NEAR(findings[0].evidence.at(0).values.at(0).second, 90.5, 0.2);
}

TEST(SlowStart, WarnsAfterTwentyMinutes) {
  TestRun run(20000);
  run.Train({.begin_s = 1300});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(SlowStart, AQuickStartIsNoFaultOfAShortRun) {
  TestRun run(60);
  run.Train({.begin_s = 15});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(SlowStart, ALongRunMayTakeItsTimeToStart) {
  TestRun run(20000);
  run.Train({.begin_s = 300});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(SlowStart, NamesTheFirstStepWhereItCompiles) {
  TestRun run(200);
  run.Train({.duration_s = [](int step) { return step == 0 ? 80.0 : 0.1; }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_GT(findings[0].advice.size(), 1U);
}

TEST(SlowStart, CannotJudgeARecordingThatBeganInTheMiddle) {
  TestRun run(200);
  model::Event step;
  step.t_ns = 100'000'000'000;
  step.kind = model::EventKind::kStep;
  step.rank = 0;
  step.step = 5000;
  step.fields = {{"duration_s", 0.1}};
  run.Write(step);
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

TEST(SlowStart, CannotJudgeWithoutSteps) {
  TestRun run(200);
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
