// SPDX-License-Identifier: Apache-2.0
// What the text and CSV forms do with ranks, processes, losses and foreign names.
#include <gtest/gtest.h>

#include <sstream>

#include "base/json_writer.h"
#include "base/strings.h"
#include "export/exporters.h"
#include "export/report_json.h"
#include "model/host_metrics.h"
#include "model/registry.h"
#include "model/run_builder.h"
#include "render/live_line.h"
#include "render/text.h"

namespace epochmeter {
namespace {

using model::EpochRow;
using model::Report;

EpochRow Row(std::optional<int32_t> rank, std::optional<int64_t> pid, int64_t epoch) {
  EpochRow row;
  row.rank = rank;
  row.pid = pid;
  row.epoch = epoch;
  row.complete = true;
  row.duration_s = 5;
  row.steps = static_cast<uint64_t>(100 * epoch + rank.value_or(0));
  return row;
}

size_t CountOf(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

bool Has(const std::string& text, std::string_view word) { return CountOf(text, word) > 0; }

std::string LineWith(const std::string& text, std::string_view word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (Has(line, word)) return line;
  }
  return {};
}

TEST(Summary, ShowsTheLastEpochOfEachRankAndCountsEpochsOnce) {
  Report report;
  for (const int32_t rank : {0, 1}) {
    for (const int64_t epoch : {0, 1, 2}) report.epochs.push_back(Row(rank, {}, epoch));
  }
  const std::string text = render::RenderSummary(model::Run(), report, {});
  EXPECT_TRUE(Has(text, "(3 total)")) << text;
  EXPECT_TRUE(Has(text, "  200\n")) << text;
  EXPECT_TRUE(Has(text, "  201\n")) << text;
  EXPECT_FALSE(Has(text, "  100\n")) << text;
}

TEST(EpochTable, TellsProcessesWithoutARankApartByTheirPid) {
  Report report;
  report.epochs = {Row({}, 4711, 0), Row({}, 4712, 0)};
  const std::string text = render::RenderReport(model::Run(), report, {});
  EXPECT_TRUE(Has(LineWith(text, "duration  "), "pid")) << text;
  EXPECT_TRUE(Has(text, "4711") && Has(text, "4712")) << text;
  report.epochs = {Row(0, {}, 0)};
  EXPECT_FALSE(Has(render::RenderReport(model::Run(), report, {}), "pid"));
}

TEST(EpochTable, DropsDataWaitAfterWhatMattersLess) {
  Report report;
  EpochRow row = Row(0, {}, 0);
  row.data_wait_ratio = 0.31;
  row.scalars = {{"loss", 0.5}};
  row.energy_j = 1000;
  row.own_gpus.power_w = 300;
  row.own_gpus.temperature_max_c = 60;
  const auto stat = [](double value) {
    model::Stat one;
    one.count = 1;
    one.mean = one.max = one.last = value;
    return one;
  };
  row.process = {{"cpu_cores", stat(1.94)}, {"rss_bytes", stat(2e9)}};
  row.framework = {{"allocated_bytes", stat(3e9)}};
  report.epochs = {row};
  render::TextOptions options;
  EXPECT_TRUE(Has(render::RenderReport(model::Run(), report, options), "1.9 "));
  for (size_t width = 100; width >= 60; --width) {
    options.width = width;
    const std::string text = render::RenderReport(model::Run(), report, options);
    const std::string titles = LineWith(text, "duration  ");
    EXPECT_TRUE(Has(titles, "loss"));
    if (Has(titles, "data wait")) continue;
    for (const char* title : {"alloc", "temp", "power", "energy", "job RAM"}) {
      EXPECT_FALSE(Has(titles, title)) << width << titles;
    }
  }
  options.width = 60;
  EXPECT_TRUE(Has(LineWith(render::RenderReport(model::Run(), report, options), "duration  "),
                  "data wait"));
}

TEST(Losses, OfOneKindAreOneItem) {
  model::Run run;
  for (const char* detail : {"first", "second", "third"}) {
    run.losses.push_back({.t_ns = 0,
                          .severity = model::LossSeverity::kDataLoss,
                          .kind = "client.dropped",
                          .count = 2,
                          .detail = detail,
                          .help = "Help."});
  }
  const std::string text = render::RenderReport(run, {}, {});
  EXPECT_TRUE(Has(text, "client.dropped × 6 (3 times): first. Help.")) << text;
  EXPECT_EQ(CountOf(text, "client.dropped"), 1U);
  render::TextOptions chinese;
  chinese.language = render::Language::kChinese;
  EXPECT_TRUE(Has(render::RenderReport(run, {}, chinese), "(3 次)"));
}

TEST(NotMeasured, OfOneReasonIsOneItem) {
  Report report;
  report.not_measured = {{"gpu0 a", "lost"}, {"host", "no"}, {"gpu0 a", "lost"}, {"gpu1", "lost"}};
  const std::string text = render::RenderReport(model::Run(), report, {});
  EXPECT_TRUE(Has(text, "  gpu0 a; gpu1: lost\n  host: no\n")) << text;
}

TEST(NotMeasured, IsOrderedByWhatIsMissedMostAndCutAtTheEnd) {
  Report report;
  for (int i = 0; i < 10; ++i) {
    report.not_measured.push_back({"host.energy" + std::to_string(i), std::to_string(i)});
  }
  report.not_measured.push_back({"host CPU", "r"});
  report.not_measured.push_back({"GPU", "none"});
  std::string names = "gpu0 a0";
  for (int i = 1; i < 100; ++i) names += ", a" + std::to_string(i);
  report.not_measured.push_back({names, "lost"});
  const std::string text = render::RenderReport(model::Run(), report, {});
  EXPECT_TRUE(Has(text, "Not measured\n  GPU: none\n  host CPU: r\n  gpu0 a0, ")) << text;
  EXPECT_TRUE(Has(text, " more: lost\n  host.energy0: 0\n")) << text;
  EXPECT_FALSE(Has(text, "a99")) << text;
  EXPECT_TRUE(Has(text, "  and 7 more (report -f json)\n")) << text;
}

TEST(Incidents, AreShownWithTimeEpochAndGpu) {
  Report report;
  report.incidents.push_back({.t_ns = 3'500'000'000,
                              .epoch = 1,
                              .gpu = 2,
                              .kind = "gpu.lost",
                              .text = "GPU is lost (15)"});
  const std::string item = "  +3.50 s, epoch 1, gpu2: gpu.lost: GPU is lost (15)\n";
  const std::string text = render::RenderReport(model::Run(), report, {});
  EXPECT_TRUE(Has(text, "Incidents\n" + item)) << text;
  EXPECT_TRUE(Has(render::RenderSummary(model::Run(), report, {}), item));
  render::TextOptions chinese;
  chinese.language = render::Language::kChinese;
  EXPECT_TRUE(Has(render::RenderReport(model::Run(), report, chinese), "故障事件\n"));
}

TEST(AfterTraining, StandsApartFromTheEpochs) {
  Report report;
  report.epochs.emplace_back().complete = true;
  report.after_training.push_back(
      {.rank = {},
       .pid = {},
       .scalars = {},
       .phases = {{.phase = "eval", .count = 1, .total_s = 2, .scalars = {{"loss", 0.875}}}}});
  const std::string text = render::RenderReport(model::Run(), report, {});
  EXPECT_FALSE(Has(text, "val_loss")) << text;
  EXPECT_TRUE(Has(LineWith(text, "after training"), "eval")) << text;
  EXPECT_TRUE(Has(LineWith(text, "after training"), "loss 0.875")) << text;
}

TEST(EpochTable, SaysOfHowManyGpusARowIs) {
  Report report;
  model::EpochRow row;
  row.complete = true;
  row.own_gpus = {.gpus = {0, 1, 2}, .measured = {0, 1, 2}, .utilization_ratio = 0.5};
  report.epochs = {row, row};
  EXPECT_FALSE(Has(render::RenderReport(model::Run(), report, {}), "3 of 3"));
  report.epochs[1].own_gpus.measured = {0, 2};
  const std::string text = render::RenderReport(model::Run(), report, {});
  EXPECT_TRUE(Has(text, "3 of 3") && Has(text, "2 of 3")) << text;
}

TEST(Header, SaysThatTheKernelKilledForMemory) {
  model::Run run;
  run.end = model::RunEnd{.t_ns = 1, .reason = "signalled", .exit_code = {}, .signal = 9};
  Report report;
  report.oom_cgroup = "/job";
  const std::string text = render::RenderReport(run, report, {});
  EXPECT_TRUE(Has(text, "killed by signal 9, by the kernel's out-of-memory killer: cgroup /job\n"))
      << text;
}

TEST(Header, SaysThatALiveRunIsStillRunning) {
  render::TextOptions options;
  EXPECT_TRUE(Has(render::RenderReport(model::Run(), {}, options), "no end was recorded"));
  options.live = true;
  const std::string text = render::RenderReport(model::Run(), {}, options);
  EXPECT_TRUE(Has(text, "still running"));
  EXPECT_FALSE(Has(text, "no end"));
  options.language = render::Language::kChinese;
  EXPECT_TRUE(Has(render::RenderReport(model::Run(), {}, options), "仍在运行"));
}

TEST(LiveLine, LetsNoNameSteerTheTerminal) {
  render::LiveEpoch epoch;
  epoch.scalars = {{"lo\033[2Jss\n", 0.5}};
  const std::string line = render::LiveEpochLine(0, epoch);
  EXPECT_EQ(line.find_first_of("\033\n"), std::string::npos);
  EXPECT_TRUE(Has(line, "lo?[2Jss?=0.5"));
}

TEST(ReportForms, CarryThePid) {
  Report report;
  report.epochs = {Row({}, 4711, 0), Row({}, 4712, 0)};
  base::JsonWriter json;
  exporting::WriteReportData(model::Run(), report, json);
  EXPECT_TRUE(Has(json.text(), "\"rank\":null,\"pid\":4711,"));
  std::ostringstream csv;
  const auto* exporter = exporting::FindExporter(exporting::Subject::kReport, "csv");
  ASSERT_TRUE(exporter->Write(model::Run(), report, {}, csv).ok());
  EXPECT_TRUE(Has(csv.str(), "rank,pid,epoch,")) << csv.str();
  EXPECT_TRUE(Has(csv.str(), "\n,4712,0,")) << csv.str();
}

TEST(WideCsv, EndsWithTheScalarsOfTheLastStepOfEachTick) {
  constexpr int64_t kSecond = base::kNsPerSecond;
  model::RunBuilder builder;
  model::Registry registry(builder);
  const model::EntityId host = registry.AddEntity(
      {.scope = model::Scope::kHost, .name = "host", .labels = {}, .attributes = {}});
  const auto memory = registry.AddSeries(host, model::host::kMemoryTotal, kSecond);
  for (int t_s = 1; t_s <= 4; ++t_s) {
    builder.Write(model::Samples{.t_ns = t_s * kSecond, .values = {{memory, 1024}}});
  }
  const auto step = [&](int64_t t_ns, std::vector<model::EventField> fields) {
    model::Event event;
    event.t_ns = t_ns;
    event.kind = model::EventKind::kStep;
    event.rank = 0;
    event.fields = std::move(fields);
    builder.Write(event);
  };
  step(2 * kSecond - 5, {{"scalar.Loss/A b", 9.0}, {"scalar.Loss/a B", 1.0}});
  step(2 * kSecond - 4, {{"scalar.Loss/A b", 0.25}});
  step(3 * kSecond + 1, {{"scalar.Loss/A b", 0.5}});
  std::ostringstream csv;
  const auto* exporter = exporting::FindExporter(exporting::Subject::kSeries, "csv");
  ASSERT_TRUE(exporter->Write(builder.Finish(), {}, {}, csv).ok());
  EXPECT_EQ(csv.str(),
            "timestamp,elapsed_seconds,step,epoch,host_memory_capacity_bytes,"
            "train_value_loss_a_b,train_value_loss_a_b_2\n"
            ",0,,,1024,,\n,1,,,1024,0.25,1\n,2,,,1024,,\n,3,,,1024,0.5,\n");
}

// A run of one GPU whose uuid is `uuid`, with a value at each time.
model::Run RunOfOneGpu(const std::string& uuid, int64_t period_ns,
                       const std::vector<int64_t>& times_ns) {
  model::RunBuilder builder;
  model::Registry registry(builder);
  const model::EntityId gpu = registry.AddEntity(
      {.scope = model::Scope::kGpu, .name = uuid, .labels = {{"uuid", uuid}}, .attributes = {}});
  const auto memory = registry.AddSeries(gpu, model::host::kMemoryTotal, period_ns);
  for (const int64_t t_ns : times_ns) {
    builder.Write(model::Samples{.t_ns = t_ns, .values = {{memory, 1024}}});
  }
  return builder.Finish();
}

std::string Exported(const model::Run& run, std::string_view format, bool long_form) {
  std::ostringstream out;
  const auto* exporter = exporting::FindExporter(exporting::Subject::kSeries, format);
  EXPECT_TRUE(exporter->Write(run, {}, {.long_form = long_form}, out).ok());
  return out.str();
}

TEST(SeriesForms, HaveEachValueOfASeriesWithAPeriodOfYears) {
  constexpr int64_t kYearNs = 365 * 86400 * base::kNsPerSecond;
  const model::Run run = RunOfOneGpu("GPU-a", 30 * kYearNs, {0, kYearNs, 30 * kYearNs});
  EXPECT_EQ(CountOf(Exported(run, "csv", false), ",1024"), 3U);
  EXPECT_EQ(CountOf(Exported(run, "csv", true), ",1024"), 3U);
  EXPECT_EQ(CountOf(Exported(run, "jsonl", false), ":1024"), 3U);
}

TEST(SeriesForms, AreUtf8WhateverAFileSaysOfItsGpus) {
  const model::Run run = RunOfOneGpu("GPU-\xFF\xD1", base::kNsPerSecond, {0});
  for (const bool long_form : {false, true}) {
    const std::string csv = Exported(run, "csv", long_form);
    EXPECT_EQ(base::ToValidUtf8(csv), csv);
  }
}

TEST(GpuTable, LetsNoNameSteerTheTerminal) {
  Report report;
  report.gpus.push_back({.gpu = -1, .uuid = "GPU-\x1B[2J\n\xFFx"});
  const std::string text = render::RenderReport(model::Run(), report, {});
  EXPECT_TRUE(Has(text, "GPU-?[2J?\xEF\xBF\xBDx")) << text;
}

}  // namespace
}  // namespace epochmeter
