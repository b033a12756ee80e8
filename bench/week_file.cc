// SPDX-License-Identifier: Apache-2.0
#include "week_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "measure.h"
#include "runfile/no_sync_file_system.h"
#include "runfile/run_reader.h"
#include "runfile/run_writer.h"

namespace epochmeter::bench {
namespace {

constexpr size_t kBatchTicks = 600;
constexpr model::SeriesId kReadSeries = 18;  // power: one of the noisy ones
constexpr int64_t kSecond = 1'000'000'000;

double Quantile(std::vector<double> sorted, double part) {
  if (sorted.empty()) return 0;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
}

// Made before the clock runs: what a recorder has in its hands when it writes.
struct Batch {
  std::vector<model::Record> ticks;
  std::vector<std::vector<model::Record>> events;  // of each tick
};

void Fill(WeekStream& stream, size_t ticks, bool with_events, Batch* batch) {
  batch->ticks.resize(ticks, model::Samples{});
  batch->events.resize(ticks);
  std::vector<model::Event> events;
  for (size_t i = 0; i < ticks; ++i) {
    events.clear();
    stream.Tick(&std::get<model::Samples>(batch->ticks[i]), &events);
    batch->events[i].clear();
    if (!with_events) continue;
    for (model::Event& event : events) batch->events[i].emplace_back(std::move(event));
  }
}

void WriteBatch(runfile::RunWriter& writer, const Batch& batch) {
  for (size_t i = 0; i < batch.ticks.size(); ++i) {
    writer.Write(batch.ticks[i]);
    for (const model::Record& event : batch.events[i]) writer.Write(event);
    const base::Result<> flushed = writer.Flush();
    EPM_CHECK(flushed.ok()) << flushed.error().Message();
  }
}

model::Run Opened(base::Result<model::Run> run) {
  EPM_CHECK(run.ok()) << run.error().Message();
  return std::move(run).value();
}

}  // namespace

double WriteCost::BytesPerValue() const {
  return static_cast<double>(bytes) / static_cast<double>(values);
}
double WriteCost::MeanUs() const { return cpu_s * 1e6 / static_cast<double>(ticks); }
double WriteCost::MedianUs() const { return Quantile(batch_us, 0.5); }
double WriteCost::BestUs() const { return Quantile(batch_us, 0.1); }

WriteCost WriteRun(const std::string& path, const StreamShape& shape, uint64_t ticks,
                   bool with_events, const Progress& progress) {
  runfile::NoSyncFileSystem file_system;
  auto created = runfile::RunWriter::Create(path, {.force = true, .file_system = &file_system});
  EPM_CHECK(created.ok()) << created.error().Message();
  runfile::RunWriter& writer = **created;
  WeekStream stream(shape);
  for (const model::Record& record : stream.Definitions()) writer.Write(record);
  EPM_CHECK(writer.Flush().ok());
  WriteCost cost;
  Batch batch;
  while (cost.ticks < ticks) {
    Fill(stream, std::min<uint64_t>(kBatchTicks, ticks - cost.ticks), with_events, &batch);
    const Stopwatch watch;
    WriteBatch(writer, batch);
    const double cpu_s = watch.cpu_s();
    cost.cpu_s += cpu_s;
    cost.batch_us.push_back(cpu_s * 1e6 / static_cast<double>(batch.ticks.size()));
    cost.ticks += batch.ticks.size();
    for (const auto& events : batch.events) cost.events += events.size();
    if (progress) progress(cost.ticks);
  }
  const base::Result<> finished = writer.Finish({.t_ns = stream.t_ns(), .reason = "exited"});
  EPM_CHECK(finished.ok()) << finished.error().Message();
  EPM_CHECK(writer.stats().dropped_values == 0 && writer.stats().dropped_records == 0);
  cost.values = cost.ticks * static_cast<uint64_t>(shape.gpus) * kMetricsPerGpu;
  cost.bytes = FileBytes(path);
  return cost;
}

void PrintOpen(const std::string& path, bool with_steps) {
  const Stopwatch watch;
  const model::Run run =
      Opened(with_steps ? runfile::OpenRun(path) : runfile::OpenRunWithoutEvents(path));
  const double wall_s = watch.wall_s();
  size_t steps = 0;
  for (const auto& [process, table] : run.steps) steps += table.size();
  fmt::print("open_ms {} cpu_ms {} peak_mb {} steps {}\n", wall_s * 1e3, watch.cpu_s() * 1e3,
             PeakRssMb(), steps);
}

void PrintMeans(const std::string& path) {
  const Stopwatch watch;
  const model::Run run = Opened(runfile::OpenRun(path));
  const double open_s = watch.wall_s();
  std::vector<model::Interval> epochs;
  for (int64_t t_ns = run.span.begin_ns; t_ns < run.span.end_ns; t_ns += kEpochTicks * kSecond) {
    epochs.push_back({t_ns, t_ns + kEpochTicks * kSecond - 1});
  }
  std::vector<model::SeriesId> series;
  for (const model::SeriesDef& def : run.series) series.push_back(def.id);
  double sum = 0;
  const auto table = run.store->SummarizeAll(series, epochs);
  EPM_CHECK(table.ok()) << table.error().Message();
  for (const auto& row : *table) {
    for (const model::Summary& summary : row) sum += summary.Mean().value_or(0);
  }
  fmt::print("open_ms {} means_ms {} cpu_ms {} peak_mb {} epochs {} sum {}\n", open_s * 1e3,
             watch.wall_s() * 1e3, watch.cpu_s() * 1e3, PeakRssMb(), epochs.size(), sum);
}

void PrintRead(const std::string& path) {
  const model::Run run = Opened(runfile::OpenRunWithoutEvents(path));
  const Stopwatch first;
  size_t values = run.store->Read(kReadSeries, {}).value().value.size();
  const double first_s = first.wall_s(), first_cpu_s = first.cpu_s();
  const Stopwatch second;
  values += run.store->Read(kReadSeries + 3, {}).value().value.size();
  fmt::print("first_ms {} first_cpu_ms {} second_ms {} second_cpu_ms {} values {}\n", first_s * 1e3,
             first_cpu_s * 1e3, second.wall_s() * 1e3, second.cpu_s() * 1e3, values);
}

void PrintReadWeek(const std::string& path) {
  const model::Run run = Opened(runfile::OpenRunWithoutEvents(path));
  const int64_t begin_ns = run.span.begin_ns + (run.span.end_ns - run.span.begin_ns) / 2;
  const Stopwatch watch;
  const auto column = run.store->Read(kReadSeries, {begin_ns, begin_ns + kWeekTicks * kSecond - 1});
  fmt::print("read_ms {} cpu_ms {} values {}\n", watch.wall_s() * 1e3, watch.cpu_s() * 1e3,
             column.value().value.size());
}

}  // namespace epochmeter::bench
