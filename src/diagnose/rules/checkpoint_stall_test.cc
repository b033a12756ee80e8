// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_metrics.h"
#include "model/host_metrics.h"

namespace epochmeter::diagnose {
namespace {

using model::EventKind;

const RuleDef& kRule = rules::kCheckpointStall;

// Every 100th step is preceded by a checkpoint that lasts so long.
double Saving(TestRun* run, double save_s, bool told) {
  const auto pause = [save_s](int step) { return step > 0 && step % 100 == 50 ? save_s : 0; };
  const double end_s = run->Train({.duration_s = [=](int step) { return 0.1 + pause(step); }});
  double t_s = 1.5;
  for (int step = 0; step < 400; ++step) {
    if (told && pause(step) > 0) {
      run->Event(t_s, EventKind::kPhaseBegin, 0, "checkpoint");
      run->Event(t_s + save_s, EventKind::kPhaseEnd, 0, "checkpoint");
    }
    t_s += 0.1 + pause(step);
  }
  return end_s;
}

TEST(CheckpointStall, FiresOnLongSaves) {
  TestRun run(80);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.2);
  Saving(&run, 2, true);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NEAR(findings[0].lost_gpu_s.value_or(0), 8, 0.1);
  EXPECT_EQ(findings[0].evidence.at(0).steps, (std::vector<int64_t>{50, 150, 250, 350}));
}

TEST(CheckpointStall, OnlyRemarksOnShortSaves) {
  TestRun run(80);
  Saving(&run, 0.2, true);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(CheckpointStall, IsSilentOnRareSavesAndOnTheFinalOne) {
  TestRun run(80);
  const double end_s = Saving(&run, 0.05, true);
  run.Event(end_s + 0.1, EventKind::kPhaseBegin, 0, "checkpoint");
  run.Event(end_s + 20, EventKind::kPhaseEnd, 0, "checkpoint");
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(CheckpointStall, OnlyRemarksWhereTheGpuWorksMeanwhile) {
  TestRun run(80);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.97);
  Saving(&run, 2, true);
  const auto findings = run.Judge(kRule);
  EXPECT_EQ(SeverityOf(findings), "info");
  EXPECT_FALSE(findings[0].lost_gpu_s);
}

// One GB in each pause.
void Writing(TestRun* run, double save_s) {
  run->Series(run->Tree(), model::host::kTreeWritten, 0.5, [=](double t) {
    double written = 0;
    double at_s = 1.5;
    for (int step = 0; step < 400 && at_s < t; ++step) {
      const bool saves = step % 100 == 50;
      if (saves) written += 1e9;
      at_s += 0.1 + (saves ? save_s : 0);
    }
    return written;
  });
}

TEST(CheckpointStall, FindsThemByTheirWritesWhereNobodyTells) {
  TestRun run(80);
  Writing(&run, 2);
  Saving(&run, 2, false);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_LT(findings[0].confidence, 0.8);
  EXPECT_NE(findings[0].explanation.en.find("1.00 GB"), std::string::npos);
}

TEST(CheckpointStall, PausesWithoutWritesAreNoCheckpoints) {
  TestRun run(80);
  run.Constant(run.Tree(), model::host::kTreeWritten, 0.5, 1e6);
  Saving(&run, 2, false);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(CheckpointStall, CannotJudgeWithoutPhasesAndWrites) {
  TestRun run(80);
  Saving(&run, 2, false);
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

// Nobody tells of the saves: each 40th step takes 2 s and writes 1 GB meanwhile.
void SavingUntold(TestRun* run, const model::MetricDef& written) {
  const auto seconds = [](int step) { return step % 40 == 17 ? 2.0 : 0.1; };
  const double end_s = run->Train({.duration_s = seconds});
  run->Series(run->Tree(), written, 0.5, [=](double t_s) -> std::optional<double> {
    double at_s = 1.5, bytes = 0;
    for (int step = 0; step < 400 && at_s < std::min(t_s, end_s); ++step) {
      at_s += seconds(step);
      if (seconds(step) > 1) bytes += 1e9;
    }
    return bytes;
  });
  run->Series(run->Gpu(0), model::gpu::kUtilization, 0.2,
              [](double t) { return static_cast<int>(t * 5 + 0.5) % 10 < 5 ? 0.9 : 0.02; });
  run->Series(run->Host(), model::host::kCpuIowait, 1, [](double t) { return 0.7 * t; });
  run->Series(run->Host(), model::host::kCpuIdle, 1, [](double t) { return 0.3 * t; });
}

TEST(CheckpointStall, OthersLeaveUntoldSavesToIt) {
  for (const RuleDef* rule : {&rules::kPeriodicStall, &rules::kBurstyGpu, &rules::kIoBound}) {
    TestRun run(80);
    SavingUntold(&run, model::host::kTreeWritten);
    const auto findings = run.Judge(*rule);
    EXPECT_NE(SeverityOf(findings), "warning") << rule->id;
    if (findings.empty()) continue;
    EXPECT_NE(findings[0].explanation.en.find("checkpoint_stall"), std::string::npos) << rule->id;
  }
  TestRun run(80);
  SavingUntold(&run, model::host::kTreeWritten);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

}  // namespace
}  // namespace epochmeter::diagnose
