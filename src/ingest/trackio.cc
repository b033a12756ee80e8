// SPDX-License-Identifier: Apache-2.0
// Imports rows of Trackio's tables `metrics` and `system_metrics`, which its storage schema
// documents, as JSON with a row a line: `sqlite3 -json PROJECT.db "SELECT * FROM system_metrics"`.
// Its SQLite and Parquet files themselves are not read.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "ingest/json_text.h"
#include "ingest/line_import.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_power_metrics.h"

namespace epochmeter::ingest {
namespace {

namespace metrics = model::gpu;

constexpr LossReason kOtherRun{
    "import.other_run", model::LossSeverity::kInfo, "rows",
    "Rows of other runs were left out: only the first run of a file is imported. Select one with "
    "WHERE run_name = '...'."};

constexpr ForeignColumn kColumns[] = {
    {"utilization", &metrics::kUtilization, "%"},
    {"memory_utilization", &metrics::kMemoryActivity, "%"},
    {"allocated_memory", &metrics::kMemoryUsed, "GiB", "with what the driver reserves"},
    {"total_memory", &metrics::kMemoryTotal, "GiB"},
    {"power", &metrics::kPower, "W"},
    {"power_limit", &metrics::kPowerLimitRequested, "W"},
    {"temp", &metrics::kTemperature, "C"},
    {"sm_clock", &metrics::kSmClock, "MHz"},
    {"memory_clock", &metrics::kMemoryClock, "MHz"},
    {"energy_consumed", &metrics::kEnergy, "J", "since the run began"},
};

// What stands around the objects of a JSON array that has one a line.
std::string_view ObjectOf(std::string_view line) {
  line = base::Trim(line);
  if (base::StartsWith(line, "[")) line.remove_prefix(1);
  while (base::EndsWith(line, "]") || base::EndsWith(line, ",")) line.remove_suffix(1);
  return base::Trim(line);
}

class Rows : public LineFormat {
 public:
  explicit Rows(ForeignRun& run) : run_(run) { run_.SetUnordered(); }

  void Line(std::string_view line) override {
    line = ObjectOf(line);
    if (line.empty()) return;
    JsonObject row;
    JsonObject values;
    if (json_.Parse(line, &row) != JsonFault::kNone) {
      run_.BadLine("no JSON object");
      return;
    }
    const std::string run_name(TextField(row, "run_name").value_or(""));
    if (!run_name_) run_name_ = run_name;
    if (*run_name_ != run_name) {
      run_.Lost(kOtherRun, 1, run_name);
      return;
    }
    run_.Fact("run_name", run_name);
    const auto stamp = TextField(row, "timestamp");
    const RowTime time{.wall_ns = stamp ? run_.clock().Parse(*stamp) : std::nullopt,
                       .of_day_ns = {}};
    if (!time.wall_ns || !Values(row, &values)) {
      run_.BadLine("no timestamp or no metrics");
      return;
    }
    if (Find(row, "step")) {
      TakeScalars(time, IntField(row, "step"), values);
    } else {
      TakeSystem(time, values);
    }
  }

 private:
  // The column `metrics` is JSON in a text; some exports unfold it.
  bool Values(JsonObject row, JsonObject* values) {
    if (const auto object = ObjectField(row, "metrics")) {
      *values = *object;
      return true;
    }
    const auto text = TextField(row, "metrics");
    return text && inner_.Parse(*text, values) == JsonFault::kNone;
  }

  void TakeScalars(const RowTime& time, std::optional<int64_t> step, JsonObject values) {
    model::Event event{.kind = model::EventKind::kScalar};
    if (step && *step >= 0) event.step = step;
    for (const auto [key, value] : values) {
      const auto number = RealOf(value);
      if (!number) continue;
      if (key == "epoch" && *number >= 0 && *number < 1e9 && *number == std::floor(*number)) {
        event.epoch = static_cast<int64_t>(*number);
      } else {
        event.fields.push_back({"scalar." + std::string(key), *number});
      }
    }
    const auto t_ns = run_.Place(time);
    if (!t_ns || event.fields.empty()) return;
    event.t_ns = *t_ns;
    run_.Event(std::move(event));
  }

  // Keys are "gpu/0/power" or, of one rank of several, "rank1/gpu/0/power".
  void TakeSystem(const RowTime& time, JsonObject values) {
    std::map<int64_t, std::vector<std::pair<const ForeignColumn*, double>>> gpus;
    for (const auto [key, value] : values) {
      auto parts = base::Split(key, '/');
      if (base::StartsWith(parts[0], "rank")) parts.erase(parts.begin());
      const bool gpu = parts.size() == 3 && parts[0] == "gpu";
      const auto index = gpu ? base::ParseInt(parts[1]) : std::nullopt;
      const auto* column =
          std::find_if(std::begin(kColumns), std::end(kColumns),
                       [&](const ForeignColumn& known) { return index && known.name == parts[2]; });
      const auto number = NumberOf(value);
      if (column == std::end(kColumns)) {
        run_.Unknown(std::string(key));
      } else if (number) {
        gpus[*index].emplace_back(column, *number);
      }
    }
    for (const auto& [index, readings] : gpus) {
      const Subject subject{.index = index};
      if (!run_.Begin(time, subject)) continue;
      run_.Describe("index", "as CUDA numbers the GPUs that the process sees");
      for (const auto& [column, number] : readings) run_.Number(*column, number);
      run_.EndRow();
    }
  }

  ForeignRun& run_;
  JsonParser json_{JsonDialect::kPythonNumbers};
  JsonParser inner_{JsonDialect::kPythonNumbers};
  std::optional<std::string> run_name_;  // of the first row
};

int Recognise(const SourceHead& head) {
  for (const std::string_view line : head.Lines()) {
    const bool row = line.find("\"run_name\"") != std::string_view::npos &&
                     line.find("\"timestamp\"") != std::string_view::npos &&
                     line.find("\"metrics\"") != std::string_view::npos;
    if (row) return 90;
  }
  return 0;
}

base::Result<ImportSummary> Import(const std::string& path, const ImportOptions& options,
                                   model::Sink& sink) {
  return ImportLines(
      {.tool = "trackio",
       .default_interval_s = 10,
       .nothing_usable = "give rows of its tables as JSON: sqlite3 -json PROJECT.db \"SELECT * "
                         "FROM system_metrics WHERE run_name='...'\"; its .db and .parquet files "
                         "are not read",
       .Make = [](ForeignRun& run, const ImportOptions& /*options*/)
           -> std::unique_ptr<LineFormat> { return std::make_unique<Rows>(run); }},
      path, options, sink);
}

}  // namespace

const ImporterDef kTrackioImporter{
    .name = "trackio",
    .summary = "rows of Trackio's tables as JSON (sqlite3 -json PROJECT.db \"SELECT ...\")",
    .Recognise = &Recognise,
    .Import = &Import};

}  // namespace epochmeter::ingest
