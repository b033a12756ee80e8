// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kAllocatorSlack;

std::function<double(double t_s)> Always(double value) {
  return [value](double) { return value; };
}

std::vector<model::Finding> JudgeMemory(const TestAllocator& allocator, double total = 80e9) {
  TestRun run(60);
  AddDevice(run, 0, total, Always(30e9));
  AddAllocator(run, 0, allocator);
  run.Train({});
  return run.Judge(kRule);
}

TEST(AllocatorSlack, FragmentationIsAWarning) {
  // 12 to 21 GB outlive a step in turn; a step needs 10 GB more.
  const auto findings = JudgeMemory(
      {.held = [](double t_s) { return 12e9 + 1.8e9 * std::fmod(std::round(t_s * 10), 6); },
       .reserved = Always(34e9),
       .peak = [](double t_s) { return 22e9 + 1.8e9 * std::min(std::round(t_s * 10), 5.0); }});
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_GT(ValueOf(findings[0], "unused_ratio"), 0.15);
  EXPECT_EQ(findings[0].gpu, 0);
}

TEST(AllocatorSlack, RetriesMakeItFragmentation) {
  const auto findings = JudgeMemory({.held = Always(12e9),
                                     .reserved = Always(34e9),
                                     .peak = Always(22e9),
                                     .retries = [](double t_s) { return std::floor(t_s / 5); }});
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_GE(ValueOf(findings[0], "alloc_retries"), 5);
}

TEST(AllocatorSlack, AMereCacheOrPoolIsOnlyRemarkedOn) {
  EXPECT_EQ(SeverityOf(JudgeMemory(
                {.held = Always(12e9), .reserved = Always(34e9), .peak = Always(22e9)})),
            "info");
  const auto pool =
      JudgeMemory({.held = Always(2e9), .reserved = Always(72e9), .peak = Always(5e9)});
  ASSERT_EQ(SeverityOf(pool), "info");
  EXPECT_NE(pool[0].explanation.en.find("pool"), std::string::npos);
}

TEST(AllocatorSlack, WhatTheNextStepNeedsIsNone) {
  // Between steps nine tenths of what is reserved are free: activations come back each step.
  EXPECT_EQ(SeverityOf(JudgeMemory(
                {.held = Always(0.42e9), .reserved = Always(3.76e9), .peak = Always(3.36e9)})),
            "none");
  EXPECT_EQ(SeverityOf(
                JudgeMemory({.held = Always(4e9), .reserved = Always(60e9), .peak = Always(54e9)})),
            "none");
}

TEST(AllocatorSlack, LittleOfTheDeviceIsNone) {
  EXPECT_EQ(
      SeverityOf(JudgeMemory({.held = Always(1e8), .reserved = Always(4e8), .peak = Always(2e8)})),
      "none");
}

TEST(AllocatorSlack, WhatGoesAwayAgainIsNone) {
  EXPECT_EQ(SeverityOf(JudgeMemory({.held = Always(12e9),
                                    .reserved = [](double t_s) { return t_s < 20 ? 34e9 : 23e9; },
                                    .peak = Always(22e9)})),
            "none");
}

TEST(AllocatorSlack, CannotJudgeWithoutReservedOrPeak) {
  TestRun run(60);
  AddAllocator(run, 0, {.peak = Always(2e9)});
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
  TestRun peakless(60);
  AddAllocator(peakless, 0, {.reserved = Always(2e9)});
  peakless.Train({});
  EXPECT_NE(peakless.NotApplicableReason(kRule), "");
}

TEST(AllocatorSlack, WhatOneOddStepLeftBehindIsARemarkThatNamesIt) {
  const auto findings =
      JudgeMemory({.period_s = 1,
                   .held = Always(1.7e9),
                   .reserved = [](double t_s) { return t_s < 26.55 ? 5.1e9 : 2.2e10; },
                   .peak = [](double t_s) { return t_s < 26.55 ? 4.8e9 : 1.96e10; }},
                  140e9);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_NE(findings[0].explanation.en.find("memory_spike"), std::string::npos);
  EXPECT_NEAR(ValueOf(findings[0], "unused_bytes"), 2.2e10 - 4.8e9, 1e6);
}

TEST(AllocatorSlack, ReadEachSecondASteadyCacheThatFitsIsNone) {
  EXPECT_EQ(SeverityOf(JudgeMemory({.period_s = 1,
                                    .held = Always(2.3e9),
                                    .reserved = Always(9.06e9),
                                    .peak = [](double t_s) { return t_s < 3 ? 3.7e9 : 8.7e9; }},
                                   140e9)),
            "none");
}

}  // namespace
}  // namespace epochmeter::diagnose
