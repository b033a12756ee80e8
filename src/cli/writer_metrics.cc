// SPDX-License-Identifier: Apache-2.0
#include "cli/writer_metrics.h"

#include "base/clock.h"

namespace epochmeter::cli {
namespace {

constexpr int64_t kPeriodNs = 10 * base::kNsPerSecond;

constexpr std::array<model::MetricDef, 3> kMetrics = {
    model::Metric({"recorder.file.written", "", "written_bytes", "recorder_written_bytes_total",
                   "By", model::MetricKind::kCounter, model::Scope::kRun, 1,
                   "Bytes written to the run file and its tail by this recorder.", "write"}),
    model::Metric({"recorder.file.flush", "", "flush_s", "recorder_flush_seconds", "s",
                   model::MetricKind::kGauge, model::Scope::kRun, 1e-6,
                   "Wall time of the last flush, the wait for the disk included.", "fdatasync"}),
    model::Metric({"recorder.file.disk_free", "", "disk_free_bytes", "recorder_disk_free_bytes",
                   "By", model::MetricKind::kGauge, model::Scope::kRun, 4096,
                   "Bytes that can still be written where the run file is.", "statvfs"}),
};

}  // namespace

std::span<const model::MetricDef> WriterMetrics::Metrics() { return kMetrics; }

void WriterMetrics::Maintain(int64_t now_ns, const RecordWriter& writer) {
  if (now_ns < next_ns_) return;
  const RecordWriter::Figures figures = writer.figures();
  if (figures.flushes == 0) return;
  next_ns_ = now_ns + kPeriodNs;
  const model::EntityId recorder = registry_.AddEntity({.id = 0,
                                                        .scope = model::Scope::kRun,
                                                        .name = "recorder",
                                                        .labels = {{"process", "recorder"}},
                                                        .attributes = {}});
  model::Samples out{.t_ns = now_ns, .values = {}};
  const auto give = [&](size_t metric, double value) {
    out.values.push_back(
        {.series = registry_.AddSeries(recorder, kMetrics[metric], kPeriodNs), .value = value});
  };
  give(0, static_cast<double>(figures.bytes_written));
  give(1, base::SecondsFromNs(figures.last_flush_ns));
  if (figures.disk_free_bytes) give(2, static_cast<double>(*figures.disk_free_bytes));
  sink_.Write(out);
}

}  // namespace epochmeter::cli
