// SPDX-License-Identifier: Apache-2.0
#include "diagnose/report_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "model/gpu_metrics.h"
#include "model/host_metrics.h"
#include "model/registry.h"
#include "model/run_builder.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;
using model::Registry;
using model::RunBuilder;
using model::Scope;

constexpr int64_t kSecond = base::kNsPerSecond;

int64_t Ns(double seconds) { return std::llround(seconds * 1e9); }

Event OfPid(double t_s, EventKind kind, int64_t pid, std::optional<int64_t> epoch = {}) {
  Event event;
  event.t_ns = Ns(t_s);
  event.kind = kind;
  event.epoch = epoch;
  event.fields = {{"pid", pid}};
  return event;
}

Event StepOfPid(double t_s, int64_t pid, int64_t epoch, int64_t step) {
  Event event = OfPid(t_s, EventKind::kStep, pid, epoch);
  event.step = step;
  event.fields.push_back({"duration_s", 0.1});
  return event;
}

// `epochs` of `steps` steps each, 0.1 s a step.
void Train(int64_t pid, int epochs, int steps, RunBuilder& builder) {
  builder.Write(OfPid(0.5, EventKind::kTrainBegin, pid));
  double t_s = 1 + 0.001 * static_cast<double>(pid % 10);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    builder.Write(OfPid(t_s, EventKind::kEpochBegin, pid, epoch));
    for (int i = 1; i <= steps; ++i) {
      t_s += 0.1;
      builder.Write(StepOfPid(t_s, pid, epoch, epoch * steps + i));
    }
    builder.Write(OfPid(t_s, EventKind::kEpochEnd, pid, epoch));
    t_s += 0.05;
  }
}

const model::Stat* Find(const model::StatTable& table, std::string_view field) {
  for (const auto& [name, stat] : table) {
    if (name == field) return &stat;
  }
  return nullptr;
}

std::string ReasonOf(const model::Report& report, std::string_view subject) {
  for (const model::NotMeasured& item : report.not_measured) {
    if (item.subject == subject) return item.reason;
  }
  return "not listed";
}

// Readings of the host each second from `first_s` on: 3 CPUs, of which 1 is busy.
void ReadHost(int first_s, int last_s, RunBuilder& builder) {
  Registry registry(builder);
  const model::EntityId host =
      registry.AddEntity({.scope = Scope::kHost, .name = "host", .labels = {}, .attributes = {}});
  const auto user = registry.AddSeries(host, model::host::kCpuUser, kSecond);
  const auto idle = registry.AddSeries(host, model::host::kCpuIdle, kSecond);
  const model::EntityId tree = registry.AddEntity(
      {.scope = Scope::kProcess, .name = "tree", .labels = {}, .attributes = {}});
  const auto cpu = registry.AddSeries(tree, model::host::kTreeCpu, kSecond);
  const auto read = registry.AddSeries(tree, model::host::kTreeRead, kSecond);
  for (int t_s = first_s; t_s <= last_s; ++t_s) {
    builder.Write(model::Samples{
        .t_ns = Ns(t_s),
        .values = {{user, 1.0 * t_s}, {idle, 2.0 * t_s}, {cpu, 0.5 * t_s}, {read, 1001.0 * t_s}}});
  }
}

TEST(Progress, ComesFromAHookWhenTheTrainingSaysSo) {
  for (const auto& [source, expected] : std::map<std::string, std::string>{
           {"hook", "hook"}, {"framework", "hook"}, {"client", "client"}, {"later", "client"}}) {
    RunBuilder builder;
    Event begin = OfPid(0.5, EventKind::kTrainBegin, 7);
    begin.fields.push_back({"source", source});
    builder.Write(begin);
    builder.Write(StepOfPid(1, 7, 0, 1));
    EXPECT_EQ(BuildReport(builder.Finish()).progress_source, expected) << source;
  }
}

Event PeriodOf(double t_s, const std::string& source, double period_s, double usual_s) {
  Event event;
  event.t_ns = Ns(t_s);
  event.kind = EventKind::kSource;
  event.name = source;
  event.fields = {{"state", std::string(period_s > usual_s ? "slowed" : "restored")},
                  {"period_s", period_s},
                  {"usual_period_s", usual_s},
                  {"process", std::string("sampler")}};
  return event;
}

TEST(NotMeasured, TellsWhatIsReadLessOftenInTheEndToStayWithinTheBudget) {
  RunBuilder builder;
  builder.Write(PeriodOf(3, "gpu.activity", 5, 1));
  builder.Write(PeriodOf(3, "gpu.energy", 20, 10));
  builder.Write(PeriodOf(3, "gpu.pcie", 300, 60));
  builder.Write(PeriodOf(13, "gpu.activity", 10, 1));
  builder.Write(PeriodOf(23, "gpu.energy", 10, 10));
  const model::Report report = BuildReport(builder.Finish());
  const std::string reason = ReasonOf(report, "gpu.activity each 10.0 s, gpu.pcie each 5 min 00 s");
  EXPECT_NE(reason.find("--cpu-budget"), std::string::npos) << reason;
  for (const model::NotMeasured& item : report.not_measured) {
    EXPECT_FALSE(item.reason_zh.empty()) << item.reason;
  }
}

TEST(Processes, WithoutARankStayApart) {
  RunBuilder builder;
  for (const int64_t pid : {104, 101, 103, 102}) Train(pid, 2, 30, builder);
  const model::Report report = BuildReport(builder.Finish());
  ASSERT_EQ(report.epochs.size(), 8U);
  for (size_t i = 0; i < report.epochs.size(); ++i) {
    const model::EpochRow& row = report.epochs[i];
    EXPECT_FALSE(row.rank);
    EXPECT_EQ(row.pid, 101 + static_cast<int64_t>(i / 2));
    EXPECT_EQ(row.epoch, static_cast<int64_t>(i % 2));
    EXPECT_EQ(row.steps, 30U);
    EXPECT_TRUE(row.complete);
  }
}

TEST(Processes, OfWhichOneTrainsAreOne) {
  RunBuilder builder;
  Train(7, 2, 3, builder);
  Event scalar = OfPid(1.2, EventKind::kScalar, 9, 0);  // a helper process without epochs
  scalar.fields.push_back({"scalar.accuracy", 0.5});
  builder.Write(scalar);
  const model::Report report = BuildReport(builder.Finish());
  ASSERT_EQ(report.epochs.size(), 2U);
  EXPECT_FALSE(report.epochs[0].rank || report.epochs[0].pid);
  EXPECT_EQ(report.epochs[0].steps, 3U);
  EXPECT_EQ(report.epochs[0].scalars, (model::ScalarTable{{"accuracy", 0.5}}));
}

TEST(Processes, KeepTheirOwnAllocators) {
  RunBuilder builder;
  Registry registry(builder);
  constexpr model::MetricDef kAllocated = model::Metric(
      {"framework.memory", "state=allocated", "allocated_bytes", "framework_memory_bytes", "By",
       model::MetricKind::kGauge, Scope::kRank, 1, "Allocated.", "test"});
  for (const int64_t pid : {1, 2}) {
    Train(pid, 1, 5, builder);
    const std::string text = std::to_string(pid);
    const model::EntityId id = registry.AddEntity({.scope = Scope::kRank,
                                                   .name = "pid:" + text,
                                                   .labels = {{"pid", text}},
                                                   .attributes = {}});
    const auto series = registry.AddSeries(id, kAllocated, 0);
    const double bytes = 1e9 * static_cast<double>(pid);
    builder.Write(model::Samples{.t_ns = Ns(1.2), .values = {{series, bytes}}});
  }
  const model::Report report = BuildReport(builder.Finish());
  ASSERT_EQ(report.epochs.size(), 2U);
  for (const model::EpochRow& row : report.epochs) {
    const model::Stat* allocated = Find(row.framework, "allocated_bytes");
    ASSERT_NE(allocated, nullptr);
    EXPECT_EQ(allocated->last, 1e9 * static_cast<double>(row.pid.value_or(0)));
  }
}

TEST(CpuFigures, OfAnEpochThatBeganBeforeTheFirstReadingComeFromItsCoveredPart) {
  RunBuilder builder;
  Train(1, 1, 40, builder);  // from 1.0 to 5.0 s
  ReadHost(3, 8, builder);
  const model::Report report = BuildReport(builder.Finish());
  ASSERT_EQ(report.epochs.size(), 1U);
  const model::Stat* ratio = Find(report.epochs[0].host, "cpu_ratio");
  const model::Stat* cores = Find(report.epochs[0].process, "cpu_cores");
  ASSERT_TRUE(ratio != nullptr && cores != nullptr);
  EXPECT_NEAR(*ratio->mean, 1.0 / 3, 1e-9);
  EXPECT_NEAR(*ratio->coverage_ratio, 0.5, 0.01);
  EXPECT_NEAR(*cores->mean, 0.5, 1e-9);
  EXPECT_NEAR(*cores->coverage_ratio, 0.5, 0.01);
  // What a part had read is not what the epoch read.
  EXPECT_EQ(Find(report.epochs[0].process, "read_bytes"), nullptr);
}

TEST(CpuFigures, OfAnEpochWithoutReadingsAreNamedWithTheReason) {
  RunBuilder builder;
  Train(1, 2, 10, builder);  // to 2.0 s and to 3.05 s
  ReadHost(3, 8, builder);
  const model::Report report = BuildReport(builder.Finish());
  ASSERT_EQ(report.epochs.size(), 2U);
  EXPECT_EQ(Find(report.epochs[0].host, "cpu_ratio"), nullptr);
  EXPECT_EQ(ReasonOf(report, "host CPU in epoch 0, 1"), "too few readings of its counters in it");
  EXPECT_EQ(ReasonOf(report, "job CPU in epoch 0, 1"), "too few readings of its counters in it");
}

TEST(Totals, OfBytesAreWholeNumbers) {
  RunBuilder builder;
  Train(3, 1, 11, builder);  // its ends lie between readings
  ReadHost(0, 8, builder);
  const model::Report report = BuildReport(builder.Finish());
  const model::Stat* read = Find(report.epochs.at(0).process, "read_bytes");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->total, 1101);  // of 1101.1
}

TEST(NotMeasured, GivesNoReasonButTheDamageOfADamagedFile) {
  const auto report_of = [](model::LossSeverity severity) {
    RunBuilder builder;
    builder.Write(model::Loss{.t_ns = 0,
                              .severity = severity,
                              .kind = "file.damaged_frame",
                              .count = 1,
                              .detail = {},
                              .help = {}});
    return BuildReport(builder.Finish());
  };
  const std::string damaged = "not known: a part of the file is damaged or missing";
  const model::Report lost = report_of(model::LossSeverity::kDataLoss);
  EXPECT_EQ(ReasonOf(lost, "GPU"), damaged);
  EXPECT_EQ(ReasonOf(lost, "epochs and steps"), damaged);
  EXPECT_EQ(ReasonOf(lost, "host CPU"), damaged);
  const model::Report whole = report_of(model::LossSeverity::kInfo);
  EXPECT_EQ(ReasonOf(whole, "GPU"), "the run has no GPU");
  EXPECT_EQ(ReasonOf(whole, "epochs and steps"), "no client spoke to the recorder");
}

TEST(NotMeasured, NamesADeviceOnceForAReason) {
  RunBuilder builder;
  Registry registry(builder);
  const model::EntityId gpu = registry.AddEntity({.scope = Scope::kGpu,
                                                  .name = "GPU-0",
                                                  .labels = {{"gpu", "0"}, {"uuid", "GPU-0"}},
                                                  .attributes = {}});
  for (const model::MetricDef& def : {model::gpu::kPower, model::gpu::kTemperature}) {
    builder.Write(model::SeriesState{.t_ns = 1,
                                     .series = registry.AddSeries(gpu, def, kSecond),
                                     .condition = model::SeriesCondition::kDeviceLost,
                                     .detail = {}});
  }
  const model::Report report = BuildReport(builder.Finish());
  EXPECT_EQ(ReasonOf(report, "gpu0 power_w, temperature_c"), "device lost");
}

TEST(NotMeasured, SaysWhyHooksThatSawStepsSawNoLoss) {
  const auto reason = [](const std::string& source, const std::string& scalar) {
    RunBuilder builder;
    Event begin = OfPid(0.5, EventKind::kTrainBegin, 7);
    begin.fields.push_back({"source", source});
    builder.Write(begin);
    Event step = StepOfPid(1, 7, 0, 1);
    if (!scalar.empty()) step.fields.push_back({scalar, 0.5});
    builder.Write(step);
    return ReasonOf(BuildReport(builder.Finish()), "loss");
  };
  EXPECT_NE(reason("hook", "").find("epochmeter.log(loss=...) tells it"), std::string::npos);
  EXPECT_EQ(reason("hook", "scalar.train_loss"), "not listed");
  EXPECT_EQ(reason("client", ""), "not listed") << "the script chose not to tell it";
}

TEST(Duration, IsFromTheStartOfTheRecordingToItsEnd) {
  RunBuilder builder;
  builder.Write(OfPid(1, EventKind::kMark, 1));  // told late of an earlier instant
  builder.Write(model::RunInfo{.run_id = "r",
                               .boot_id = {},
                               .anchor = {.mono_ns = Ns(10), .boot_ns = 0, .wall_ns = 0},
                               .attributes = {}});
  builder.Write(model::RunEnd{.t_ns = Ns(14), .reason = "exited", .exit_code = 0, .signal = {}});
  builder.Write(OfPid(20, EventKind::kMark, 1));
  EXPECT_EQ(BuildReport(builder.Finish()).duration_s, 4);
}

}  // namespace
}  // namespace epochmeter::diagnose
