// SPDX-License-Identifier: Apache-2.0
#include "diagnose/run_row.h"

#include <gtest/gtest.h>

#include <cmath>

namespace epochmeter::diagnose {
namespace {

using model::RunRow;

model::StatTable Table(std::string field, double value) {
  model::Stat stat;
  stat.count = 1;
  stat.mean = stat.max = stat.total = value;
  return {{std::move(field), stat}};
}

TEST(RunRow, OfARunWithNothingInItKnowsNothing) {
  const RunRow row = RowOf({}, {});
  EXPECT_EQ(row.state, "no end");
  EXPECT_EQ(row.ranks + row.gpus + row.epochs + row.steps, 0U);
  EXPECT_FALSE(row.duration_s || row.utilization_ratio || row.waste_gpu_s || row.peak_epoch);
  EXPECT_EQ(row.worst_rule, "");
}

TEST(RunRow, CountsNoStepsThatNobodyCounted) {
  model::Report report;
  report.epochs.push_back({.steps = 7, .steps_known = false});
  EXPECT_EQ(RowOf({}, report).steps, 0U);
  EXPECT_EQ(RowOf({}, report).ranks, 1U);
}

TEST(RunRow, SaysWhatTheTrainingDidAndWhereItsPeakLies) {
  model::Run run;
  run.info = model::RunInfo{.run_id = "id", .attributes = {{"tag.name", "bert"}, {"host", "h"}}};
  run.end = model::RunEnd{.t_ns = 1, .reason = "exited", .exit_code = 0, .signal = {}};
  model::Report report;
  report.duration_s = 100;
  for (const int32_t rank : {0, 1}) {
    for (const int64_t epoch : {0, 1, 2}) {
      model::EpochRow row;
      row.rank = rank;
      row.epoch = epoch;
      row.steps = rank == 0 ? 10 : 9;
      row.step_s.mean = 2;
      row.step_s.count = row.steps;
      row.data_wait_ratio = rank == 0 ? 0.5 : 0.0;
      row.own_gpus.utilization_ratio = epoch == 1 ? 0.9 : 0.5;
      report.epochs.push_back(row);
    }
  }
  report.process = Table("read_bytes", 1e9);
  const RunRow row = RowOf(run, report);
  EXPECT_EQ(row.name, "bert");
  EXPECT_EQ(row.state, "exit 0");
  EXPECT_EQ(row.ranks, 2U);
  EXPECT_EQ(row.epochs, 3U);
  EXPECT_EQ(row.steps, 30U);
  EXPECT_EQ(row.peak_epoch, 1);
  EXPECT_DOUBLE_EQ(*row.peak_utilization_ratio, 0.9);
  EXPECT_NEAR(*row.data_wait_ratio, 0.5 * 10 / 19, 1e-12);
  EXPECT_DOUBLE_EQ(*row.read_bytes_per_s, 1e7);
}

TEST(RunRow, TakesGpusOfTheJobOnly) {
  model::Report report;
  for (int32_t gpu = 0; gpu < 3; ++gpu) {
    model::GpuStats stats{.gpu = gpu, .of_job = gpu < 2};
    stats.stats = Table("utilization_ratio", 0.2 * (gpu + 1));
    report.gpus.push_back(stats);
  }
  const RunRow row = RowOf({}, report);
  EXPECT_EQ(row.gpus, 2U);
  EXPECT_NEAR(*row.utilization_ratio, 0.3, 1e-12);
}

TEST(RunRow, KnowsNoWasteWhereNothingWasTold) {
  model::Report report;
  report.bill.emplace();
  report.bill->total.total_ns = 16'000'000'000;
  report.bill->total.uses[static_cast<size_t>(model::TimeUse::kUnknown)].ns = 16'000'000'000;
  const RunRow row = RowOf({}, report);
  EXPECT_DOUBLE_EQ(*row.gpu_s, 16);
  EXPECT_FALSE(row.waste_gpu_s);
}

TEST(RunRow, CountsNoLossTwice) {
  model::Report report;
  report.bill.emplace();
  report.bill->total.total_ns = 100'000'000'000;
  report.bill->total.uses[static_cast<size_t>(model::TimeUse::kIdle)].ns = 30'000'000'000;
  report.bill->total.uses[static_cast<size_t>(model::TimeUse::kProductive)].ns = 70'000'000'000;
  model::Finding finding;
  finding.rule = "idle_gpu";
  finding.severity = model::Severity::kWarning;
  finding.lost_gpu_s = 30;
  report.findings = {finding, finding};
  RunRow row = RowOf({}, report);
  EXPECT_DOUBLE_EQ(*row.waste_gpu_s, 30);
  EXPECT_DOUBLE_EQ(*row.gpu_s, 100);
  EXPECT_EQ(row.warnings, 2U);
  EXPECT_EQ(row.worst_rule, "idle_gpu");
  report.findings[1].lost_gpu_s = 55;
  EXPECT_DOUBLE_EQ(*RowOf({}, report).waste_gpu_s, 55);
  report.findings[1].lost_gpu_s = NAN;
  report.findings[0].severity = report.findings[1].severity = model::Severity::kNotApplicable;
  EXPECT_EQ(RowOf({}, report).worst_rule, "");
}

RunRow Row(std::string name, std::optional<double> waste_gpu_s) {
  RunRow row;
  row.name = std::move(name);
  row.waste_gpu_s = waste_gpu_s;
  return row;
}

TEST(SortRows, PutsUnknownFiguresLast) {
  std::vector<RunRow> rows = {Row("a", {}), Row("b", 1), Row("c", 5)};
  ASSERT_TRUE(SortRows("waste", &rows));
  EXPECT_EQ(rows[0].name + rows[1].name + rows[2].name, "cba");
  ASSERT_TRUE(SortRows("name", &rows));
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_FALSE(SortRows("colour", &rows));
  for (const std::string_view key : RunSortKeys()) EXPECT_TRUE(SortRows(key, &rows)) << key;
}

TEST(Profiles, AreOfRunsOfOneNameOrCommand) {
  std::vector<RunRow> rows;
  for (int i = 1; i <= 100; ++i) {
    rows.push_back(Row("big", {}));
    rows.back().gpus = 2;
    rows.back().gpu_memory_peak_bytes = i * 1e9;
    rows.back().cpu_cores = 8;
  }
  rows.push_back(Row("", {}));
  rows.back().command = "python a.py";
  rows.push_back(Row("broken", {}));
  rows.back().error = "why";
  const std::vector<model::RunProfile> profiles = ProfilesOf(rows);
  ASSERT_EQ(profiles.size(), 2U);
  EXPECT_EQ(profiles[0].name, "big");
  EXPECT_EQ(profiles[0].runs, 100U);
  EXPECT_EQ(profiles[1].name, "python a.py");
  EXPECT_TRUE(profiles[1].figures.empty());
  for (const model::ProfileFigure& figure : profiles[0].figures) {
    if (figure.field == "gpu_memory_peak_bytes") {
      EXPECT_NEAR(figure.p50, 50.5e9, 1);
      EXPECT_NEAR(figure.p95, 95.05e9, 1);
      EXPECT_EQ(figure.max, 100e9);
    }
    if (figure.field == "cpu_per_gpu_cores") {
      EXPECT_EQ(figure.p50, 4);
    }
  }
  EXPECT_EQ(profiles[0].figures.size(), 3U);
}

}  // namespace
}  // namespace epochmeter::diagnose
