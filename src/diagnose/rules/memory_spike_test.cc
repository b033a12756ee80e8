// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kMemorySpike;

// Steps of 0.1 s end at 1.6, 1.7, ...: step n ends at 1.5 + n / 10.
std::vector<model::Finding> JudgePeak(const std::function<double(double t_s)>& peak,
                                      const TestTraining& training = {}) {
  TestRun run(70);
  AddDevice(run, 0, 24e9, [](double) { return 5e9; });
  AddAllocator(run, 0, {.held = [](double) { return 4e8; }, .peak = peak});
  run.Train(training);
  return run.Judge(kRule);
}

TEST(MemorySpike, NamesTheStepAndItsBatch) {
  const auto findings =
      JudgePeak([](double t_s) { return t_s < 26.55 ? 3e9 : 2e10; },
                {.duration_s = [](int step) { return step == 250 ? 0.15 : 0.1; }});
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].evidence[0].steps, std::vector<int64_t>{251});
  EXPECT_EQ(ValueOf(findings[0], "batch_size"), 32);
  EXPECT_NEAR(ValueOf(findings[0], "need_bytes"), 2e10 - 4e8, 1);
  EXPECT_NEAR(ValueOf(findings[0], "usual_need_bytes"), 3e9 - 4e8, 1);
}

TEST(MemorySpike, ASlowStepMakesItSurer) {
  const auto peak = [](double t_s) { return t_s < 26.55 ? 3e9 : 2e10; };
  const double plain = JudgePeak(peak).at(0).confidence;
  const auto slow = JudgePeak(peak, {.duration_s = [](int s) { return s == 250 ? 0.5 : 0.1; }});
  EXPECT_GT(slow.at(0).confidence, plain);
}

TEST(MemorySpike, ASmallOneIsOnlyRemarkedOn) {
  EXPECT_EQ(SeverityOf(JudgePeak([](double t_s) { return t_s < 26.55 ? 5e8 : 6e8; })), "info");
}

TEST(MemorySpike, WarmUpAndASteadyPeakAreNone) {
  EXPECT_EQ(SeverityOf(JudgePeak([](double t_s) { return t_s < 3 ? 1e9 : 2e10; })), "none");
  EXPECT_EQ(SeverityOf(JudgePeak([](double) { return 3e9; })), "none");
  EXPECT_EQ(SeverityOf(JudgePeak([](double t_s) { return t_s < 26.55 ? 3e9 : 4e9; })), "none");
}

TEST(MemorySpike, GrowthOfWhatIsHeldIsNone) {
  TestRun run(70);
  const auto held = [](double t_s) { return 4e8 + 4e8 * t_s; };
  AddAllocator(run, 0, {.held = held, .peak = [&](double t_s) { return held(t_s) + 3e9; }});
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(MemorySpike, AnEvaluationsPeakIsItsOwn) {
  // The evaluation after the third epoch: 35.5 s to 37.5 s.
  EXPECT_EQ(
      SeverityOf(JudgePeak([](double t_s) { return t_s < 36.5 ? 3e9 : 2e10; }, {.eval_s = 2})),
      "none");
}

TEST(MemorySpike, CannotJudgeWithoutAPeak) {
  TestRun run(60);
  AddAllocator(run, 0, {});
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

// The recorder's own samples: each second, and what is held does not move.
std::vector<model::Finding> JudgeSeldom(const std::function<double(double t_s)>& peak,
                                        const TestTraining& training, double period_s = 1) {
  TestRun run(70);
  AddDevice(run, 0, 140e9, [](double) { return 5e9; });
  AddAllocator(run, 0, {.period_s = period_s, .held = [](double) { return 1.7e9; }, .peak = peak});
  run.Train(training);
  return run.Judge(kRule);
}

TEST(MemorySpike, ReadEachSecondItNamesTheSlowestStepLessSurely) {
  const auto findings = JudgeSeldom([](double t_s) { return t_s < 26.55 ? 4.8e9 : 1.96e10; },
                                    {.duration_s = [](int s) { return s == 250 ? 0.23 : 0.1; }});
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].evidence[0].steps, std::vector<int64_t>{251});
  EXPECT_LT(findings[0].confidence, 0.85);
  EXPECT_NE(findings[0].explanation.en.find("another one between them"), std::string::npos);
}

TEST(MemorySpike, ReadEachSecondAFirstLargeBatchInWarmUpIsNone) {
  EXPECT_EQ(SeverityOf(JudgeSeldom([](double t_s) { return t_s < 4 ? 4.8e9 : 1.96e10; }, {})),
            "none");
  EXPECT_EQ(SeverityOf(JudgeSeldom([](double) { return 4.8e9; }, {})), "none");
  EXPECT_EQ(
      SeverityOf(JudgeSeldom([](double t_s) { return t_s < 36.5 ? 3e9 : 2e10; }, {.eval_s = 2})),
      "none");
}

TEST(MemorySpike, WithoutAnAllocatorTheDeviceIsRemarkedOnUnlessAStepStandsOut) {
  for (const double slow_s : {0.1, 0.3}) {
    TestRun run(70);
    AddDevice(run, 0, 140e9, [](double t_s) { return t_s < 26.55 ? 5e9 : 2.2e10; });
    run.Train({.duration_s = [slow_s](int step) { return step == 250 ? slow_s : 0.1; }});
    EXPECT_EQ(SeverityOf(run.Judge(kRule)), slow_s > 0.2 ? "warning" : "info");
  }
}

TEST(MemorySpike, ADeviceThatFillsSteadilyIsNone) {
  TestRun run(70);
  AddDevice(run, 0, 140e9, [](double t_s) { return 5e9 + 1e9 * t_s; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

}  // namespace
}  // namespace epochmeter::diagnose
