// SPDX-License-Identifier: Apache-2.0
// Imports the CSV that nvitop's ResourceMetricCollector gives: a row a sample, columns named
// "TAG/cuda:0 (gpu:0)/gpu_utilization (%)/last". Of its statistics only "last" is a reading;
// "mean", "min" and "max" are over everything since the collector was started.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "ingest/client_metrics.h"
#include "ingest/line_import.h"
#include "model/gpu_health_metrics.h"
#include "model/gpu_power_metrics.h"
#include "model/limits.h"

namespace epochmeter::ingest {
namespace {

namespace metrics = model::gpu;

constexpr ForeignColumn kGpuColumns[] = {
    {"gpu_utilization", &metrics::kUtilization, "%"},
    {"memory_utilization", &metrics::kMemoryActivity, "%"},
    {"memory_used", &metrics::kMemoryUsed, "MiB"},
    {"memory_free", &metrics::kMemoryFree, "MiB"},
    {"memory_total", &metrics::kMemoryTotal, "MiB"},
    {"temperature", &metrics::kTemperature, "C"},
    {"power_usage", &metrics::kPower, "W"},
    {"fan_speed", &metrics::kFanSpeed, "%"},
};
constexpr ForeignColumn kProcessColumns[] = {
    {"gpu_memory", &metrics::kOfProcessMemory, "MiB"},
    {"gpu_sm_utilization", &metrics::kOfProcessSm, "%"},
    {"gpu_memory_utilization", &metrics::kOfProcessMemoryActivity, "%"},
};
constexpr ForeignColumn kHostColumns[] = {
    {"cpu_percent", &kHostCpuUsed, "%"},
};

struct Field {
  const ForeignColumn* column = nullptr;
  std::string unit;
  Subject subject;
  bool time = false;
};

template <size_t kSize>
const ForeignColumn* Find(const ForeignColumn (&columns)[kSize], std::string_view name) {
  for (const ForeignColumn& column : columns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

// "cuda:0 (gpu:0)" or, for an instance of MIG, "cuda:0 (gpu:0:1)".
bool ReadGpu(std::string_view text, Subject* subject) {
  constexpr std::string_view kMark = "(gpu:";
  const size_t at = text.find(kMark);
  if (at == std::string_view::npos || text.back() != ')') return false;
  text = text.substr(at + kMark.size(), text.size() - at - kMark.size() - 1);
  const auto parts = base::Split(text, ':');
  subject->index = base::ParseInt(parts[0]);
  if (parts.size() > 1) subject->instance = "mig" + std::string(parts[1]);
  return subject->index.has_value() && parts.size() <= 2;
}

// Empty when the column is no reading of ours.
Field ReadField(std::string_view text) {
  Field field;
  const auto parts = base::Split(text, '/');
  const size_t n = parts.size();
  if (parts.back() == "timestamp") field.time = true;
  if (n < 3 || parts.back() != "last") return field;
  const HeaderField what = ReadHeaderField(parts[n - 2]);
  field.unit = what.unit;
  const std::string_view where = parts[n - 3];
  const bool process = n > 3 && base::StartsWith(parts[n - 4], "pid:");
  if (ReadGpu(where, &field.subject)) {
    field.column = process ? Find(kProcessColumns, what.name) : Find(kGpuColumns, what.name);
  } else if (where == "host" && !process) {
    field.subject.kind = Subject::Kind::kHost;
    field.column = Find(kHostColumns, what.name);
  }
  if (!process) return field;
  const auto pid = base::ParseInt(parts[n - 4].substr(4));
  field.subject.kind = Subject::Kind::kProcess;
  field.subject.pid = pid.value_or(0);
  if (!pid || *pid <= 0) field.column = nullptr;
  return field;
}

class CollectorCsv : public LineFormat {
 public:
  explicit CollectorCsv(ForeignRun& run) : run_(run) {}

  void Line(std::string_view line) override {
    if (base::Trim(line).empty() || TakeHeader(line)) return;
    const auto cells = CsvFields(line, ',', fields_.size());
    const auto time_s = cells.size() == fields_.size() && !fields_.empty()
                            ? base::ParseDouble(cells[time_])
                            : std::nullopt;
    if (!time_s || *time_s < 0 || *time_s > kMostSeconds) {
      run_.BadLine("not as many fields as the header has, or no time");
      return;
    }
    const RowTime time{.wall_ns = static_cast<int64_t>(std::llround(*time_s * 1e6)) * 1000,
                       .of_day_ns = {}};
    // Columns of one subject stand together.
    for (size_t i = 0; i < fields_.size();) {
      size_t end = i + 1;
      const std::string key = fields_[i].subject.Key();
      while (end < fields_.size() && fields_[end].subject.Key() == key) ++end;
      TakeSubject(time, cells, i, end);
      i = end;
    }
  }

 private:
  static constexpr double kMostSeconds = model::kMostWallNs / base::kNsPerSecond;

  bool TakeHeader(std::string_view line) {
    if (line.find("/timestamp") == std::string_view::npos) return false;
    std::vector<Field> fields;
    std::optional<size_t> time;
    std::vector<std::string> unknown;
    for (const std::string& text : CsvFields(line, ',', 0)) {
      fields.push_back(ReadField(text));
      if (fields.back().time) time = fields.size() - 1;
      const bool reading = base::EndsWith(text, "/last");
      if (reading && fields.back().column == nullptr) unknown.push_back(text);
    }
    if (!time) return false;
    fields_ = std::move(fields);
    time_ = *time;
    for (const std::string& name : unknown) run_.Unknown(name);
    return true;
  }

  void TakeSubject(const RowTime& time, const std::vector<std::string>& cells, size_t begin,
                   size_t end) {
    const bool any = std::any_of(fields_.begin() + static_cast<std::ptrdiff_t>(begin),
                                 fields_.begin() + static_cast<std::ptrdiff_t>(end),
                                 [](const Field& field) { return field.column != nullptr; });
    if (!any || !run_.Begin(time, fields_[begin].subject)) return;
    for (size_t i = begin; i < end; ++i) {
      if (fields_[i].column != nullptr) run_.Cell(*fields_[i].column, cells[i], fields_[i].unit);
    }
    run_.EndRow();
  }

  ForeignRun& run_;
  std::vector<Field> fields_;
  size_t time_ = 0;  // the field with the time
};

int Recognise(const SourceHead& head) {
  const auto lines = head.Lines();
  return !lines.empty() && lines[0].find("/timestamp") != std::string_view::npos &&
                 lines[0].find("/last") != std::string_view::npos
             ? 95
             : 0;
}

base::Result<ImportSummary> Import(const std::string& path, const ImportOptions& options,
                                   model::Sink& sink) {
  return ImportLines(
      {.tool = "nvitop",
       .default_interval_s = 1,
       .nothing_usable = "give the CSV of ResourceMetricCollector.collect() with the columns "
                         "TAG/timestamp and .../last",
       .Make = [](ForeignRun& run, const ImportOptions& /*options*/)
           -> std::unique_ptr<LineFormat> { return std::make_unique<CollectorCsv>(run); }},
      path, options, sink);
}

}  // namespace

const ImporterDef kNvitopImporter{
    .name = "nvitop",
    .summary = "a CSV of nvitop's ResourceMetricCollector (its screen: nvidia-smi-table)",
    .Recognise = &Recognise,
    .Import = &Import};

}  // namespace epochmeter::ingest
