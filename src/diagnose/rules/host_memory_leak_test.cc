// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/test_host.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kHostMemoryLeak;
constexpr double kMB = 1e6;
double Leaks(double t_s) { return 2000 * kMB + 20 * kMB * t_s; }

// Four epochs of 10 s from 1.5 s on; private memory of the tree by the time.
std::vector<model::Finding> JudgeAnon(const LevelAt& anon, const TestTraining& training = {}) {
  TestRun run(60);
  AddTree(run, {.anon = anon});
  run.Train(training);
  return run.Judge(kRule);
}

TEST(HostMemoryLeak, FiresOnSteadyGrowthAndSaysHowMuchAnEpoch) {
  const auto findings = JudgeAnon(Leaks);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 0);
  EXPECT_NEAR(ValueOf(findings[0], "slope_bytes_per_epoch"), 200 * kMB, 5 * kMB);
  EXPECT_NEAR(ValueOf(findings[0], "slope_bytes_per_hour"), 72e9, 2e9);
}

TEST(HostMemoryLeak, SaysWhenTheLimitIsMet) {
  TestRun run(60);
  AddHostMemory(run, 64e9, [](double) { return 10e9; });
  AddTree(run, {.rss = Leaks});
  AddCgroup(run, {.limit_bytes = 8e9, .anon = Leaks});
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(ValueOf(findings[0], "limit_bytes"), 8e9);
  // 2.8 GB after 41.5 s, 20 MB a second.
  EXPECT_NEAR(ValueOf(findings[0], "limit_met_in_s"), 258, 10);
  EXPECT_NE(findings[0].explanation.en.find("8.00 GB"), std::string::npos);
}

TEST(HostMemoryLeak, WhatLevelsOffJumpsOrSwingsIsNone) {
  EXPECT_EQ(SeverityOf(JudgeAnon([](double t_s) { return 2e9 + 3e9 * (1 - std::exp(-t_s / 8)); })),
            "none");
  EXPECT_EQ(SeverityOf(JudgeAnon([](double t_s) { return t_s < 25 ? 2e9 : 4e9; })), "none");
  EXPECT_EQ(SeverityOf(JudgeAnon([](double t_s) { return 2e9 + 1e8 * std::fmod(t_s, 10); })),
            "none");
  EXPECT_EQ(SeverityOf(JudgeAnon([](double t_s) { return 2e9 + 5e6 * std::sin(t_s * t_s); })),
            "none");
}

TEST(HostMemoryLeak, PagesOfMappedFilesAreNone) {
  TestRun run(60);
  AddTree(run, {.rss = Leaks});
  AddHostMemory(run, 64e9, [](double) { return 10e9; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(HostMemoryLeak, ResidentMemoryCountsWhereTheHostFillsToo) {
  TestRun run(60);
  AddTree(run, {.rss = Leaks});
  AddHostMemory(run, 64e9, [](double t_s) { return 10e9 + Leaks(t_s); });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(HostMemoryLeak, OthersInTheCgroupAreNone) {
  TestRun run(60);
  AddCgroup(run, {.anon = Leaks});
  AddTree(run, {.rss = [](double) { return 3e9; }});
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(HostMemoryLeak, WithoutAWitnessOrInOneEpochItIsOnlyRemarkedOn) {
  TestRun run(60);
  AddTree(run, {.rss = Leaks});
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
  EXPECT_EQ(SeverityOf(JudgeAnon(Leaks, {.epochs = 1, .steps = 400})), "info");
}

TEST(HostMemoryLeak, WhatGoesAlongWithALargerLeakOnTheDeviceIsOnlyRemarkedOn) {
  TestRun run(60);
  AddTree(run, {.anon = Leaks});
  AddAllocator(run, 0, {.held = [](double t_s) { return 4e8 + 5e7 * t_s; }});
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_NE(findings[0].explanation.en.find("Device memory"), std::string::npos);
}

TEST(HostMemoryLeak, ATrainingWithoutStepsIsJudgedByTime) {
  TestRun run(120);
  AddTree(run, {.anon = Leaks});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NEAR(ValueOf(findings[0], "slope_bytes_per_s"), 20 * kMB, kMB);
}

TEST(HostMemoryLeak, CannotJudgeWithoutMemoryOrWithTooFewSamples) {
  TestRun none(60);
  none.Train({});
  EXPECT_NE(none.NotApplicableReason(kRule), "");
  TestRun few(60);
  AddTree(few, {.period_s = 10, .anon = Leaks});
  few.Train({});
  EXPECT_NE(few.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
