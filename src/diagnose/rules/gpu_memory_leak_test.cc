// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/memory.h"
#include "diagnose/rules/all.h"
#include "diagnose/test_memory.h"
#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kGpuMemoryLeak;
constexpr double kMB = 1e6;

// A training of four epochs with 100 steps of 0.1 s from 1.5 s on; `held` by the time.
std::vector<model::Finding> JudgeHeld(const std::function<double(double t_s)>& held,
                                      const TestTraining& training = {}) {
  TestRun run(60);
  AddDevice(run, 0, 24e9, held);
  AddAllocator(run, 0, {.held = held});
  run.Train(training);
  return run.Judge(kRule);
}

TEST(GpuMemoryLeak, FiresOnSteadyGrowthAndSaysHowMuchAnEpoch) {
  const auto findings = JudgeHeld([](double t_s) { return 420 * kMB + 4 * kMB * t_s; });
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 0);
  EXPECT_EQ(findings[0].gpu, 0);
  EXPECT_GE(findings[0].confidence, 0.9);
  // 10 s an epoch.
  EXPECT_NEAR(ValueOf(findings[0], "slope_bytes_per_epoch"), 40 * kMB, 1 * kMB);
  EXPECT_NEAR(ValueOf(findings[0], "epoch3_floor_bytes", 1), 546 * kMB, 2 * kMB);
  EXPECT_EQ(findings[0].advice.size(), 3U);
}

TEST(GpuMemoryLeak, FindsALeakBelowASawToothOfEachEpoch) {
  TestRun run(120);
  AddAllocator(run, 0, {.held = [](double t_s) {
                 const double in_epoch = std::fmod(std::max(t_s - 1.55, 0.0), 10);
                 return 500 * kMB + 30 * kMB * in_epoch + 2 * kMB * t_s;
               }});
  run.Train({.epochs = 10});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(GpuMemoryLeak, WarmUpThatLevelsOffIsNone) {
  EXPECT_EQ(SeverityOf(JudgeHeld(
                [](double t_s) { return 420 * kMB + 900 * kMB * (1 - std::exp(-t_s / 8)); })),
            "none");
  EXPECT_EQ(SeverityOf(JudgeHeld([](double t_s) { return kMB * std::min(t_s * 50, 500.0); })),
            "none");
}

TEST(GpuMemoryLeak, OneJumpASawToothAndNoiseAreNone) {
  EXPECT_EQ(SeverityOf(JudgeHeld([](double t_s) { return t_s < 25 ? 4e8 : 9e8; })), "none");
  EXPECT_EQ(SeverityOf(JudgeHeld([](double t_s) { return 4e8 + 5e7 * std::fmod(t_s, 10); })),
            "none");
  EXPECT_EQ(SeverityOf(JudgeHeld([](double t_s) { return 4e8 + 1e6 * std::sin(t_s * t_s); })),
            "none");
  EXPECT_EQ(SeverityOf(JudgeHeld([](double) { return 4e8; })), "none");
}

TEST(GpuMemoryLeak, APeakThatRisesIsNone) {
  TestRun run(60);
  AddAllocator(
      run, 0,
      {.held = [](double) { return 4e8; }, .peak = [](double t_s) { return 3e9 + 1e8 * t_s; }});
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(GpuMemoryLeak, GrowthWithinTheOnlyEpochIsLessCertain) {
  const auto findings = JudgeHeld([](double t_s) { return 4e8 + 1e8 * t_s; },
                                  {.epochs = 1, .steps = 300, .ends = false});
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_LT(findings[0].confidence, 0.9);
}

TEST(GpuMemoryLeak, TheDriversFigureIsOnlyRemarkedOn) {
  TestRun run(60);
  run.Series(run.Gpu(0), model::gpu::kMemoryUsed, 0.5, [](double t_s) { return 4e9 + 1e8 * t_s; });
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_LT(findings[0].confidence, 0.7);
}

TEST(GpuMemoryLeak, ManyRanksAreOneFinding) {
  TestRun run(20);
  for (int rank = 0; rank < 40; ++rank) {
    AddAllocator(run, rank, {.held = [rank](double t_s) { return 4e8 + 1e6 * (rank + 1) * t_s; }});
    run.Train({.rank = rank, .epochs = 3, .steps = 50, .gpus = std::to_string(rank % 8)});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rank, 39);
  EXPECT_NE(findings[0].summary.en.find(" 40 ranks"), std::string::npos);
}

TEST(GpuMemoryLeak, CannotJudgeWithoutMemoryOrWithTooFewSamples) {
  TestRun none(60);
  none.Train({});
  EXPECT_NE(none.NotApplicableReason(kRule), "");
  TestRun few(60);
  AddAllocator(few, 0, {.period_s = 5, .held = [](double t_s) { return 4e8 + 1e8 * t_s; }});
  few.Train({});
  EXPECT_NE(few.NotApplicableReason(kRule), "");
}

TEST(GpuMemoryLeak, AnAllocatorThatIsReadSeldomIsJudgedByTheEndsOfEpochs) {
  // Samples each 2.5 s, epochs of 5 s.
  const auto judge = [](const std::function<double(double t_s)>& held) {
    TestRun run(40);
    AddAllocator(run, 0, {.period_s = 2.5, .held = held});
    run.Train({.epochs = 5, .steps = 50});
    return run.Judge(kRule);
  };
  const auto leak = judge([](double t_s) { return 1.7e9 + 4e7 * t_s; });
  ASSERT_EQ(SeverityOf(leak), "warning");
  EXPECT_LT(leak[0].confidence, 0.85);
  EXPECT_EQ(SeverityOf(judge([](double t_s) { return 1.7e9 + 2e4 * t_s; })), "none");
  EXPECT_EQ(SeverityOf(judge([](double t_s) { return t_s < 14 ? 1.7e9 : 2.7e9; })), "none");
  EXPECT_EQ(SeverityOf(judge([](double t_s) { return 2.7e9 - 1e9 * std::exp(-t_s / 5); })), "none");
  EXPECT_EQ(SeverityOf(judge([](double) { return 1.7e9; })), "none");
}

TEST(GpuMemoryLeak, AListOfProcessesThatIsReadSeldomGivesWayToTheWholeDevice) {
  TestRun run(60);
  run.Series(run.Gpu(0), model::gpu::kMemoryUsed, 0.5, [](double t_s) { return 4e9 + 1e8 * t_s; });
  run.Series(run.Gpu(0), model::gpu::kOwnMemory, 20, [](double t_s) { return 4e9 + 1e8 * t_s; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(GpuMemoryLeak, SaysNoIntervalThatReadsTheSame) {
  const auto findings = JudgeHeld([](double t_s) { return 420 * kMB + 4 * kMB * t_s; });
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].summary.en.find("MiB"), std::string::npos) << findings[0].summary.en;
  const Trend same{.slope = 16e6, .slope_low = 16e6, .slope_high = 16e6};
  EXPECT_EQ(SayRate(same, 1, {.en = "a step", .zh = ""}).en, "16.0 MB a step");
  const Trend other{.slope = 16e6, .slope_low = 15e6, .slope_high = 16e6};
  EXPECT_EQ(SayRate(other, 1, {.en = "a step", .zh = ""}).en,
            "16.0 MB a step (15.0 MB to 16.0 MB)");
}

}  // namespace
}  // namespace epochmeter::diagnose
