// SPDX-License-Identifier: Apache-2.0
#include "export/run_rows.h"

#include <array>

#include "base/clock.h"
#include "export/text_fields.h"

namespace epochmeter::exporting {
namespace {

using model::RunRow;

struct TextField {
  std::string_view name;
  std::string (*Get)(const RunRow& row);  // empty: not known
};
constexpr TextField kTexts[] = {
    {"path", [](const RunRow& row) { return row.path; }},
    {"error", [](const RunRow& row) { return row.error; }},
    {"run_id", [](const RunRow& row) { return row.run_id; }},
    {"name", [](const RunRow& row) { return row.name; }},
    {"command", [](const RunRow& row) { return row.command; }},
    {"host", [](const RunRow& row) { return row.host; }},
    {"state", [](const RunRow& row) { return row.state; }},
    {"started",
     [](const RunRow& row) {
       return row.started_wall_ns ? base::FormatUtc(*row.started_wall_ns) : std::string();
     }},
    {"gpu_model", [](const RunRow& row) { return row.gpu_model; }},
    {"worst_rule", [](const RunRow& row) { return row.worst_rule; }},
    {"worst_severity",
     [](const RunRow& row) {
       return row.worst_rule.empty() ? std::string()
                                     : std::string(model::SeverityName(row.worst_severity));
     }},
    {"worst_title", [](const RunRow& row) { return row.worst_title.en; }},
    {"worst_title_zh", [](const RunRow& row) { return row.worst_title.zh; }},
};

struct CountField {
  std::string_view name;
  uint64_t RunRow::*value;
};
constexpr CountField kCounts[] = {
    {"ranks", &RunRow::ranks}, {"gpus", &RunRow::gpus},           {"epochs", &RunRow::epochs},
    {"steps", &RunRow::steps}, {"criticals", &RunRow::criticals}, {"warnings", &RunRow::warnings},
};

struct NumberField {
  std::string_view name;
  std::optional<double> RunRow::*value;
};
constexpr NumberField kNumbers[] = {
    {"duration_s", &RunRow::duration_s},
    {"utilization_ratio", &RunRow::utilization_ratio},
    {"sm_active_ratio", &RunRow::sm_active_ratio},
    {"peak_utilization_ratio", &RunRow::peak_utilization_ratio},
    {"gpu_memory_peak_bytes", &RunRow::gpu_memory_peak_bytes},
    {"gpu_memory_total_bytes", &RunRow::gpu_memory_total_bytes},
    {"iowait_ratio", &RunRow::iowait_ratio},
    {"data_wait_ratio", &RunRow::data_wait_ratio},
    {"cpu_cores", &RunRow::cpu_cores},
    {"memory_peak_bytes", &RunRow::memory_peak_bytes},
    {"read_bytes_per_s", &RunRow::read_bytes_per_s},
    {"written_bytes_per_s", &RunRow::written_bytes_per_s},
    {"energy_j", &RunRow::energy_j},
    {"gpu_s", &RunRow::gpu_s},
    {"waste_gpu_s", &RunRow::waste_gpu_s},
};

void WriteRow(const RunRow& row, base::JsonWriter& json) {
  json.BeginObject();
  for (const TextField& field : kTexts) {
    const std::string text = field.Get(row);
    json.Key(field.name);
    if (text.empty()) {
      json.Null();
    } else {
      json.String(text);
    }
  }
  const bool known = row.error.empty();
  for (const CountField& field : kCounts) {
    json.Key(field.name);
    if (known) {
      json.Uint(row.*field.value);
    } else {
      json.Null();
    }
  }
  json.Field("peak_epoch", row.peak_epoch);
  for (const NumberField& field : kNumbers) json.Field(field.name, row.*field.value);
  json.EndObject();
}

}  // namespace

void WriteRunRows(const std::vector<RunRow>& rows, const std::vector<model::RunProfile>& profiles,
                  base::JsonWriter& json) {
  json.BeginObject().Key("runs").BeginArray();
  for (const RunRow& row : rows) WriteRow(row, json);
  json.EndArray().Key("profiles").BeginArray();
  for (const model::RunProfile& profile : profiles) {
    json.BeginObject().Field("name", profile.name).Field("runs", profile.runs);
    json.Key("figures").BeginObject();
    for (const model::ProfileFigure& figure : profile.figures) {
      json.Key(figure.field).BeginObject().Field("runs", figure.runs).Field("p50", figure.p50);
      json.Field("p95", figure.p95).Field("max", figure.max).EndObject();
    }
    json.EndObject().EndObject();
  }
  json.EndArray().EndObject();
}

base::Result<> WriteRunRowsCsv(const std::vector<RunRow>& rows, std::ostream& out) {
  std::vector<std::string> cells;
  for (const TextField& field : kTexts) cells.emplace_back(field.name);
  for (const CountField& field : kCounts) cells.emplace_back(field.name);
  cells.emplace_back("peak_epoch");
  for (const NumberField& field : kNumbers) cells.emplace_back(field.name);
  WriteCsvRow(cells, out);
  for (const RunRow& row : rows) {
    cells.clear();
    const bool known = row.error.empty();
    for (const TextField& field : kTexts) cells.push_back(CsvCell(field.Get(row)));
    for (const CountField& field : kCounts) {
      cells.push_back(known ? std::to_string(row.*field.value) : std::string());
    }
    cells.push_back(row.peak_epoch ? std::to_string(*row.peak_epoch) : std::string());
    for (const NumberField& field : kNumbers) cells.push_back(CsvNumber(row.*field.value));
    WriteCsvRow(cells, out);
  }
  return StreamState(out);
}

}  // namespace epochmeter::exporting
