// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "base/strings.h"
#include "export/exporters.h"
#include "export/text_fields.h"

namespace epochmeter::exporting {
namespace {

using model::EpochRow;
using model::Report;
using model::Run;
using model::Stat;
using model::StatTable;

struct Column {
  std::string name;
  std::function<std::string(const EpochRow&)> Cell;
};

std::string StatCell(const StatTable& table, std::string_view field,
                     std::optional<double> Stat::*figure) {
  for (const auto& [name, stat] : table) {
    if (name == field) return CsvNumber(stat.*figure);
  }
  return {};
}

Column FromTable(std::string name, StatTable EpochRow::*table, std::string field,
                 std::optional<double> Stat::*figure) {
  return {.name = std::move(name),
          .Cell = [table, field = std::move(field), figure](const EpochRow& row) {
            return StatCell(row.*table, field, figure);
          }};
}

std::string ScalarCell(const model::ScalarTable& table, const std::string& name) {
  for (const auto& [known, value] : table) {
    if (known == name) return CsvNumber(value);
  }
  return {};
}

void AddUnique(const std::string& name, std::vector<std::string>* names) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

void AddProgress(const Run& run, const Report& report, TimeFormat time,
                 std::vector<Column>* columns) {
  const auto add = [&](std::string name, std::function<std::string(const EpochRow&)> cell) {
    columns->push_back({std::move(name), std::move(cell)});
  };
  add("rank", [](const EpochRow& row) { return row.rank ? std::to_string(*row.rank) : ""; });
  const bool has_pids = std::any_of(report.epochs.begin(), report.epochs.end(),
                                    [](const EpochRow& row) { return row.pid.has_value(); });
  if (has_pids) {
    add("pid", [](const EpochRow& row) { return row.pid ? std::to_string(*row.pid) : ""; });
  }
  add("epoch", [](const EpochRow& row) {
    return row.epoch == model::kNoEpoch ? "" : std::to_string(row.epoch);
  });
  add("begin", [&run, time](const EpochRow& row) { return TimeText(run, row.begin_ns, time); });
  add("end", [&run, time](const EpochRow& row) { return TimeText(run, row.end_ns, time); });
  add("complete", [](const EpochRow& row) { return row.complete ? "true" : "false"; });
  add("duration_s", [](const EpochRow& row) { return CsvNumber(row.duration_s); });
  add("steps",
      [](const EpochRow& row) { return row.steps_known ? std::to_string(row.steps) : ""; });
  add("samples",
      [](const EpochRow& row) { return row.samples ? std::to_string(*row.samples) : ""; });
  add("step_p50_s", [](const EpochRow& row) { return CsvNumber(row.step_s.p50); });
  add("step_p95_s", [](const EpochRow& row) { return CsvNumber(row.step_s.p95); });
  add("data_wait_ratio", [](const EpochRow& row) { return CsvNumber(row.data_wait_ratio); });
}

void AddMachine(std::vector<Column>* columns) {
  columns->push_back(FromTable("host_cpu_ratio", &EpochRow::host, "cpu_ratio", &Stat::mean));
  columns->push_back(
      FromTable("host_memory_used_max_bytes", &EpochRow::host, "memory_used_bytes", &Stat::max));
  columns->push_back(FromTable("process_cpu_cores", &EpochRow::process, "cpu_cores", &Stat::mean));
  columns->push_back(
      FromTable("process_rss_max_bytes", &EpochRow::process, "rss_bytes", &Stat::max));
  columns->push_back(
      FromTable("process_read_bytes", &EpochRow::process, "read_bytes", &Stat::total));
  columns->push_back(
      FromTable("process_written_bytes", &EpochRow::process, "written_bytes", &Stat::total));
  for (const char* field : {"allocated_bytes", "reserved_bytes", "max_allocated_bytes"}) {
    columns->push_back(
        FromTable(std::string("framework_") + field, &EpochRow::framework, field, &Stat::last));
  }
  columns->push_back({"energy_j", [](const EpochRow& row) { return CsvNumber(row.energy_j); }});
}

struct GpuFigure {
  const char* name;
  const char* field;
  std::optional<double> Stat::*figure;
};
constexpr GpuFigure kGpuFigures[] = {
    {"utilization_ratio", "utilization_ratio", &Stat::mean},
    {"sm_active_ratio", "sm_active_ratio", &Stat::mean},
    {"memory_used_max_bytes", "memory_used_bytes", &Stat::max},
    {"own_memory_max_bytes", "own_memory_bytes", &Stat::max},
    {"others_memory_max_bytes", "others_memory_bytes", &Stat::max},
    {"unexplained_memory_max_bytes", "unexplained_memory_bytes", &Stat::max},
    {"power_w", "power_w", &Stat::mean},
    {"temperature_max_c", "temperature_c", &Stat::max},
};

std::string GpuCell(const EpochRow& row, int32_t index, const GpuFigure& figure) {
  for (const model::GpuStats& gpu : row.gpus) {
    if (gpu.gpu == index) return StatCell(gpu.stats, figure.field, figure.figure);
  }
  return {};
}

void AddGpus(const Report& report, std::vector<Column>* columns) {
  for (const model::GpuStats& gpu : report.gpus) {
    if (gpu.gpu < 0) continue;
    const std::string prefix = "gpu" + std::to_string(gpu.gpu) + "_";
    for (const GpuFigure& figure : kGpuFigures) {
      columns->push_back({prefix + figure.name, [index = gpu.gpu, figure](const EpochRow& row) {
                            return GpuCell(row, index, figure);
                          }});
    }
  }
}

const model::PhaseStats* FindPhase(const EpochRow& row, const std::string& name) {
  for (const model::PhaseStats& phase : row.phases) {
    if (phase.phase == name) return &phase;
  }
  return nullptr;
}

void AddPhase(const Report& report, const std::string& name, std::vector<Column>* columns) {
  columns->push_back({name + "_s", [name](const EpochRow& row) {
                        const model::PhaseStats* phase = FindPhase(row, name);
                        return phase == nullptr ? std::string() : CsvNumber(phase->total_s);
                      }});
  std::vector<std::string> scalars;
  for (const EpochRow& row : report.epochs) {
    const model::PhaseStats* phase = FindPhase(row, name);
    if (phase == nullptr) continue;
    for (const auto& [scalar, value] : phase->scalars) AddUnique(scalar, &scalars);
  }
  for (const std::string& scalar : scalars) {
    columns->push_back({base::Join({name, scalar}, "_"), [name, scalar](const EpochRow& row) {
                          const model::PhaseStats* phase = FindPhase(row, name);
                          return phase == nullptr ? "" : ScalarCell(phase->scalars, scalar);
                        }});
  }
}

// What the client named: the training's scalars, then each phase with its own.
void AddNamed(const Report& report, std::vector<Column>* columns) {
  std::vector<std::string> scalars;
  std::vector<std::string> phases;
  for (const EpochRow& row : report.epochs) {
    for (const auto& [name, value] : row.scalars) AddUnique(name, &scalars);
    for (const model::PhaseStats& phase : row.phases) AddUnique(phase.phase, &phases);
  }
  for (const std::string& name : scalars) {
    columns->push_back(
        {"train_" + name, [name](const EpochRow& row) { return ScalarCell(row.scalars, name); }});
  }
  for (const std::string& name : phases) AddPhase(report, name, columns);
}

base::Result<> Write(const Run& run, const Report& report, const ExportOptions& options,
                     std::ostream& out) {
  std::vector<Column> columns;
  AddProgress(run, report, options.time, &columns);
  AddMachine(&columns);
  AddGpus(report, &columns);
  AddNamed(report, &columns);
  std::vector<std::string> cells;
  cells.reserve(columns.size());
  for (const Column& column : columns) cells.push_back(CsvCell(column.name));
  WriteCsvRow(cells, out);
  for (const EpochRow& row : report.epochs) {
    cells.clear();
    for (const Column& column : columns) cells.push_back(column.Cell(row));
    WriteCsvRow(cells, out);
  }
  return StreamState(out);
}

}  // namespace

extern const ExporterDef kReportCsv{.subject = Subject::kReport,
                                    .name = "csv",
                                    .extension = "csv",
                                    .summary = "one epoch a row",
                                    .Write = Write};

}  // namespace epochmeter::exporting
