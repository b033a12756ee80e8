// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kSlowingDown;

std::string Judged(const std::function<double(int)>& duration_s) {
  TestRun run(400);
  run.Train({.duration_s = duration_s});
  return SeverityOf(run.Judge(kRule));
}

TEST(SlowingDown, StepsThatBecomeSlowAndStaySlowAreAWarning) {
  TestRun run(400);
  run.Train({.duration_s = [](int step) { return step < 250 ? 0.1 : 0.3; }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NE(findings[0].summary.en.find("3.00 times as long"), std::string::npos);
  ASSERT_EQ(findings[0].evidence.size(), 1U);
  ASSERT_EQ(findings[0].evidence[0].steps.size(), 1U);
  EXPECT_NEAR(static_cast<double>(findings[0].evidence[0].steps[0]), 250, 50);
  EXPECT_GT(findings[0].lost_gpu_s.value_or(0), 15);
}

TEST(SlowingDown, StepsThatGrowAllTheTimeAreTold) {
  EXPECT_EQ(Judged([](int step) { return 0.1 + step * 0.001; }), "warning");
}

TEST(SlowingDown, ALittleSlowerIsInfo) {
  EXPECT_EQ(Judged([](int step) { return step < 200 ? 0.1 : 0.14; }), "info");
}

TEST(SlowingDown, ASlowStretchThatPassesIsNone) {
  EXPECT_EQ(Judged([](int step) { return step > 150 && step < 250 ? 0.3 : 0.1; }), "none");
}

TEST(SlowingDown, NoiseAndSlowBeginningsAreNone) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> noise(-2.3, 0.5);
  EXPECT_EQ(Judged([&](int) { return noise(random); }), "none");
  EXPECT_EQ(Judged([](int step) { return step < 150 ? 0.5 : 0.1; }), "none");
}

TEST(SlowingDown, AThroughputStandsInForDurations) {
  TestRun run(400);
  for (int i = 0; i < 64; ++i) {
    run.Event(1 + i, model::EventKind::kStep, {}, "",
              {{"scalar.throughput_per_s", i < 16 ? 7.0 : 0.9}});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].summary.en.find("training went from 7"), 0U) << findings[0].summary.en;
  EXPECT_FALSE(findings[0].lost_gpu_s.has_value());
}

TEST(SlowingDown, AFewStepsCannotBeJudged) {
  TestRun run(60);
  run.Train({.epochs = 1, .steps = 12});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
