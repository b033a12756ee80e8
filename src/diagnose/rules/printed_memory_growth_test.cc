// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kPrintedMemoryGrowth;

TestRun& WithPeak(TestRun& run, const std::function<double(double t_s)>& peak) {
  AddAllocator(run, 0, {.period_s = 0.5, .held = {}, .reserved = {}, .peak = peak, .retries = {}});
  run.Train({});
  return run;
}

TEST(PrintedMemoryGrowth, APeakThatRisesAllTheTimeIsTold) {
  TestRun run(60);
  const auto findings = WithPeak(run, [](double t_s) { return 4e9 + 5e7 * t_s; }).Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NE(findings[0].summary.en.find("rises all the time"), std::string::npos);
  EXPECT_EQ(findings[0].evidence.at(0).steps.size(), 2U);
}

TEST(PrintedMemoryGrowth, OneThatLevelsOffOrJumpsOrGainsLittleIsNot) {
  TestRun level(60), jump(60), little(60);
  EXPECT_EQ(
      SeverityOf(WithPeak(level, [](double t_s) { return 4e9 + 2e9 * (1 - std::exp(-t_s / 5)); })
                     .Judge(kRule)),
      "none");
  EXPECT_EQ(
      SeverityOf(WithPeak(jump, [](double t_s) { return t_s < 20 ? 4e9 : 6e9; }).Judge(kRule)),
      "none");
  EXPECT_EQ(SeverityOf(WithPeak(little, [](double t_s) { return 4e9 + 5e6 * t_s; }).Judge(kRule)),
            "none");
}

TEST(PrintedMemoryGrowth, LiveBytesAreJudgedElsewhere) {
  TestRun run(60);
  AddAllocator(run, 0, {.held = [](double) { return 4e8; }});
  EXPECT_NE(WithPeak(run, [](double t_s) { return 4e9 + 5e7 * t_s; }).NotApplicableReason(kRule),
            "");
}

}  // namespace
}  // namespace epochmeter::diagnose
