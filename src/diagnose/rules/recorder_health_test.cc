// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

namespace gpu = model::gpu;
using model::EventKind;

const RuleDef& kRule = rules::kRecorderHealth;

model::Loss LossOf(std::string kind, uint64_t count,
                   model::LossSeverity severity = model::LossSeverity::kDataLoss) {
  return {.t_ns = 5'000'000'000,
          .severity = severity,
          .kind = std::move(kind),
          .count = count,
          .detail = "somewhere",
          .help = ""};
}

TEST(RecorderHealth, SilentOnAWholeRecording) {
  TestRun run(60);
  run.Constant(run.Gpu(0), gpu::kUtilization, 1, 0.9);
  run.Train({});
  run.Write(LossOf("client.clock", 3, model::LossSeverity::kInfo));
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(RecorderHealth, NothingRecordedIsNoFaultOfTheRecorder) {
  TestRun run(60);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(RecorderHealth, FewLostEventsAreInfoManyAWarning) {
  TestRun few(60);
  few.Train({});
  few.Write(LossOf("client.dropped", 2));
  EXPECT_EQ(SeverityOf(few.Judge(kRule)), "info");
  TestRun many(60);
  many.Train({});
  many.Write(LossOf("client.dropped", 150));
  const auto findings = many.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NE(findings[0].summary.en.find("150 events"), std::string::npos);
}

TEST(RecorderHealth, DamageInsideTheFileIsAWarningATornEndInfo) {
  TestRun damaged(60);
  damaged.Write(LossOf("file.damaged_chunk", 1));
  EXPECT_EQ(SeverityOf(damaged.Judge(kRule)), "warning");
  TestRun torn(60);
  torn.Write(LossOf("file.torn_tail", 1));
  EXPECT_EQ(SeverityOf(torn.Judge(kRule)), "info");
}

TEST(RecorderHealth, AHoleSaysWhichShareOfTheTimeIsMissing) {
  TestRun run(60);
  run.Series(run.Gpu(0), gpu::kUtilization, 1, [](double t_s) -> std::optional<double> {
    if (t_s > 20 && t_s < 40) return {};
    return 0.9;
  });
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  const auto& evidence = findings[0].evidence.at(0);
  EXPECT_EQ(evidence.series, "gpu0 utilization_ratio");
  EXPECT_NEAR(evidence.values.at(0).second, 19, 1.5);
}

TEST(RecorderHealth, ASeriesThatBeginsLateHasNoHole) {
  TestRun run(60);
  run.Series(run.Gpu(0), gpu::kUtilization, 1, [](double t_s) -> std::optional<double> {
    if (t_s < 20) return {};
    return 0.9;
  });
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(RecorderHealth, AnEndOfTheSamplerAndAClockThatWasSetAreSaid) {
  TestRun run(60);
  run.Event(20, EventKind::kSource, {}, "sampler", {{"state", "gone"}, {"detail", "signal 9"}});
  run.Event(21, EventKind::kSource, {}, "sampler", {{"state", "back"}, {"away_s", 1.0}});
  run.Event(30, EventKind::kSource, {}, "clock.jumped", {{"by_s", 3600.0}});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_EQ(findings[0].evidence.size(), 2U);
}

TEST(RecorderHealth, LateReadingsAreInfo) {
  constexpr model::MetricDef kLag =
      model::Metric({"recorder.lag", "", "lag_s", "sample_lag_seconds", "s",
                     model::MetricKind::kGauge, model::Scope::kRun, 1e-6, "How late.", "clock"});
  TestRun run(60);
  const model::EntityId sampler = run.Entity(
      {.id = 0, .scope = model::Scope::kRun, .name = "sampler", .labels = {}, .attributes = {}});
  run.Series(sampler, kLag, 1, [](double t_s) { return t_s > 30 ? 5 : 0.001; });
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

std::string SourceFails(double t_s, const char* name, const char* state, bool works_again) {
  TestRun run(60);
  run.Event(t_s, EventKind::kSource, {}, name, {{"state", state}, {"reason", "why"}});
  if (works_again) {
    run.Event(t_s + 5, EventKind::kSource, {}, name, {{"state", "ok"}, {"reason", "works"}});
  }
  return SeverityOf(run.Judge(kRule));
}

TEST(RecorderHealth, ASourceThatFailsToTheEndIsInfoOneThatWorksAgainIsNone) {
  EXPECT_EQ(SourceFails(20, "host.disk", "failing", false), "info");
  EXPECT_EQ(SourceFails(20, "host.disk", "failing", true), "none");
}

TEST(RecorderHealth, WhatNeverWorkedAndTheBudgetAreToldElsewhere) {
  EXPECT_EQ(SourceFails(0.5, "cgroup.io", "failing", false), "none");
  EXPECT_EQ(SourceFails(20, "budget", "exceeded", false), "none");
  EXPECT_EQ(SourceFails(20, "gpu.activity", "slowed", false), "none");
}

}  // namespace
}  // namespace epochmeter::diagnose
