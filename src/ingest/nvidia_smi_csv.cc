// SPDX-License-Identifier: Apache-2.0
// Imports `nvidia-smi --query-gpu=... --format=csv -l N`, with or without header and units, by any
// driver: fields that were renamed are known by both names. Also --query-compute-apps.
#include <algorithm>
#include <map>

#include "base/strings.h"
#include "ingest/line_import.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_health_metrics.h"
#include "model/gpu_link_metrics.h"
#include "model/gpu_power_metrics.h"

namespace epochmeter::ingest {
namespace {

namespace metrics = model::gpu;

constexpr std::string_view kReservedNote =
    "what the driver reserves is in it before driver 510, and not from then on";

// Several names of one metric: the older or shorter ones that drivers also take.
constexpr ForeignColumn kGpuColumns[] = {
    {"utilization.gpu", &metrics::kUtilization, "%"},
    {"utilization.memory", &metrics::kMemoryActivity, "%"},
    {"memory.total", &metrics::kMemoryTotal, "MiB"},
    {"memory.used", &metrics::kMemoryUsed, "MiB", kReservedNote},
    {"memory.free", &metrics::kMemoryFree, "MiB"},
    {"memory.reserved", &metrics::kMemoryReserved, "MiB"},
    {"temperature.gpu", &metrics::kTemperature, "C"},
    {"temperature.memory", &metrics::kMemoryTemperature, "C"},
    {"power.draw", &metrics::kPower, "W"},
    {"power.draw.average", &metrics::kPowerAverage, "W"},
    {"power.draw.instant", &metrics::kPowerInstant, "W"},
    {"enforced.power.limit", &metrics::kPowerLimit, "W"},
    {"power.limit", &metrics::kPowerLimitRequested, "W"},
    {"power.default_limit", &metrics::kPowerLimitDefault, "W"},
    {"power.min_limit", &metrics::kPowerLimitMin, "W"},
    {"power.max_limit", &metrics::kPowerLimitMax, "W"},
    {"clocks.current.sm", &metrics::kSmClock, "MHz"},
    {"clocks.sm", &metrics::kSmClock, "MHz"},
    {"clocks.current.memory", &metrics::kMemoryClock, "MHz"},
    {"clocks.mem", &metrics::kMemoryClock, "MHz"},
    {"clocks.current.graphics", &metrics::kGraphicsClock, "MHz"},
    {"clocks.gr", &metrics::kGraphicsClock, "MHz"},
    {"clocks.current.video", &metrics::kVideoClock, "MHz"},
    {"clocks.video", &metrics::kVideoClock, "MHz"},
    {"clocks.max.sm", &metrics::kMaxSmClock, "MHz"},
    {"clocks.max.memory", &metrics::kMaxMemoryClock, "MHz"},
    {"clocks.max.mem", &metrics::kMaxMemoryClock, "MHz"},
    {"clocks.max.graphics", &metrics::kMaxGraphicsClock, "MHz"},
    {"clocks.max.gr", &metrics::kMaxGraphicsClock, "MHz"},
    {"pstate", &metrics::kPerformanceState, ""},
    {"fan.speed", &metrics::kFanSpeed, "%"},
    {"temperature.gpu.tlimit", &metrics::kTemperatureMargin, "C"},
    {"utilization.encoder", &metrics::kEncoder, "%"},
    {"utilization.decoder", &metrics::kDecoder, "%"},
    {"utilization.jpeg", &metrics::kJpeg, "%"},
    {"utilization.ofa", &metrics::kOpticalFlow, "%"},
    {"pcie.link.gen.current", &metrics::kPcieGeneration, ""},
    {"pcie.link.gen.gpucurrent", &metrics::kPcieGeneration, ""},
    {"pcie.link.gen.max", &metrics::kPcieMaxGeneration, ""},
    {"pcie.link.width.current", &metrics::kPcieWidth, ""},
    {"pcie.link.width.max", &metrics::kPcieMaxWidth, ""},
    {"ecc.errors.corrected.volatile.total", &metrics::kEccCorrectedVolatile, ""},
    {"ecc.errors.uncorrected.volatile.total", &metrics::kEccUncorrectedVolatile, ""},
    {"ecc.errors.corrected.aggregate.total", &metrics::kEccCorrectedAggregate, ""},
    {"ecc.errors.uncorrected.aggregate.total", &metrics::kEccUncorrectedAggregate, ""},
    {"retired_pages.single_bit_ecc.count", &metrics::kRetiredSingle, ""},
    {"retired_pages.sbe", &metrics::kRetiredSingle, ""},
    {"retired_pages.double_bit.count", &metrics::kRetiredDouble, ""},
    {"retired_pages.dbe", &metrics::kRetiredDouble, ""},
    {"retired_pages.pending", &metrics::kRetiredPending, ""},
    {"remapped_rows.correctable", &metrics::kRemappedCorrected, ""},
    {"remapped_rows.uncorrectable", &metrics::kRemappedUncorrected, ""},
    {"remapped_rows.pending", &metrics::kRemapPending, ""},
    {"remapped_rows.failure", &metrics::kRemapFailed, ""},
    {"clocks_event_reasons.active", &metrics::kThrottleReasons, ""},
    {"clocks_throttle_reasons.active", &metrics::kThrottleReasons, ""},
    {"clocks_event_reasons_counters.sw_power_cap", &metrics::kThrottlePower, "us"},
    {"clocks_event_reasons_counters.sw_thermal_slowdown", &metrics::kThrottleThermal, "us"},
    {"clocks_event_reasons_counters.sync_boost", &metrics::kThrottleSyncBoost, "us"},
};

constexpr ForeignColumn kProcessColumns[] = {
    {"used_memory", &metrics::kOfProcessMemory, "MiB"},
    {"used_gpu_memory", &metrics::kOfProcessMemory, "MiB"},
};

enum class Role : uint8_t { kUnknown, kValue, kTime, kIndex, kUuid, kBusId, kPid, kFact };

struct NamedRole {
  std::string_view name;
  Role role;
  std::string_view attribute = {};  // of kFact
};
constexpr NamedRole kRoles[] = {
    {"timestamp", Role::kTime},
    {"index", Role::kIndex},
    {"uuid", Role::kUuid},
    {"gpu_uuid", Role::kUuid},
    {"pci.bus_id", Role::kBusId},
    {"gpu_bus_id", Role::kBusId},
    {"pid", Role::kPid},
    {"name", Role::kFact, "name"},
    {"gpu_name", Role::kFact, "name"},
    {"process_name", Role::kFact, "process_name"},
    {"serial", Role::kFact, "serial"},
    {"gpu_serial", Role::kFact, "serial"},
    {"driver_version", Role::kFact, "driver_version"},
    {"vbios_version", Role::kFact, "vbios_version"},
    {"compute_cap", Role::kFact, "compute_capability"},
    {"mig.mode.current", Role::kFact, "mig_mode"},
};

struct Field {
  Role role = Role::kUnknown;
  const ForeignColumn* column = nullptr;
  std::string unit;
  std::string_view attribute;
};

class SmiCsv : public LineFormat {
 public:
  SmiCsv(ForeignRun& run, const ImportOptions& options, bool processes)
      : run_(run), processes_(processes) {
    if (!options.columns.empty()) TakeHeader(options.columns);
  }

  void Line(std::string_view line) override {
    if (base::Trim(line).empty() || TakeHeader(line)) return;
    if (fields_.empty()) {
      run_.BadLine("no header before it (give --columns)");
      return;
    }
    const auto cells = CsvFields(line, separator_, fields_.size());
    if (cells.size() != fields_.size()) {
      run_.BadLine("not as many fields as the header has");
      return;
    }
    TakeRow(cells);
  }

 private:
  const ForeignColumn* FindColumn(std::string_view name) const {
    const auto find = [name](const auto& columns) -> const ForeignColumn* {
      for (const ForeignColumn& column : columns) {
        if (column.name == name) return &column;
      }
      return nullptr;
    };
    return processes_ ? find(kProcessColumns) : find(kGpuColumns);
  }

  Field ReadField(const HeaderField& header) const {
    if (const ForeignColumn* column = FindColumn(header.name)) {
      return {.role = Role::kValue, .column = column, .unit = header.unit, .attribute = {}};
    }
    for (const NamedRole& known : kRoles) {
      if (known.name != header.name) continue;
      // In a list of processes "name" is theirs.
      const bool of_process = processes_ && known.name == "name";
      return {.role = known.role,
              .column = nullptr,
              .unit = {},
              .attribute = of_process ? "process_name" : known.attribute};
    }
    return {};
  }

  // False when the line is no header. A header may come again, and with other fields.
  bool TakeHeader(std::string_view line) {
    const char separator = CsvSeparator(line);
    std::vector<Field> fields;
    std::vector<std::string> unknown;
    bool any = false;
    for (const std::string& text : CsvFields(line, separator, 0)) {
      const HeaderField header = ReadHeaderField(text);
      if (header.name.empty() || header.name[0] < 'a' || header.name[0] > 'z') return false;
      Field field = ReadField(header);
      const bool again = field.column != nullptr && IsTaken(fields, *field.column);
      if (again) field = {};
      if (field.role == Role::kUnknown) unknown.push_back(again ? text + " (again)" : text);
      any = any || field.role != Role::kUnknown;
      fields.push_back(std::move(field));
    }
    if (!any) return false;
    separator_ = separator;
    fields_ = std::move(fields);
    for (const std::string& name : unknown) run_.Unknown(name);
    return true;
  }

  static bool IsTaken(const std::vector<Field>& fields, const ForeignColumn& column) {
    return std::any_of(fields.begin(), fields.end(), [&column](const Field& field) {
      return field.column != nullptr && field.column->metric == column.metric;
    });
  }

  // False when a cell that names the row can't be read.
  bool ReadName(const std::vector<std::string>& cells, RowTime* time, Subject* subject) {
    bool good = true;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string& cell = cells[i];
      const bool absent = ReadCell(cell).kind == CellKind::kAbsent;
      if (fields_[i].role == Role::kTime) {
        time->wall_ns = run_.clock().Parse(cell);
        good = good && time->wall_ns;
      } else if (fields_[i].role == Role::kIndex && !absent) {
        subject->index = base::ParseInt(cell);
        good = good && subject->index;
      } else if (fields_[i].role == Role::kUuid && !absent) {
        subject->uuid = cell;
        good = good && (base::StartsWith(cell, "GPU-") || base::StartsWith(cell, "MIG-"));
      } else if (fields_[i].role == Role::kBusId && !absent) {
        subject->bus_id = base::ToLowerAscii(cell);
        good = good && cell.find(':') != std::string::npos;
      } else if (fields_[i].role == Role::kPid) {
        const auto pid = base::ParseInt(cell);
        subject->pid = pid.value_or(0);
        good = good && pid && *pid > 0;
      }
    }
    return good;
  }

  void TakeRow(const std::vector<std::string>& cells) {
    RowTime time;
    Subject subject;
    if (processes_) subject.kind = Subject::Kind::kProcess;
    if (!ReadName(cells, &time, &subject)) {
      run_.BadLine("its time, GPU or process can't be read");
      return;
    }
    if (!run_.Begin(time, subject)) return;
    for (size_t i = 0; i < cells.size(); ++i) {
      const Field& field = fields_[i];
      if (field.role == Role::kValue) run_.Cell(*field.column, cells[i], field.unit);
      // What a list of processes tells of the GPU is not about the process.
      const bool of_gpu = processes_ && field.attribute != "process_name";
      if (field.role == Role::kFact && !of_gpu) run_.Describe(field.attribute, cells[i]);
    }
    run_.EndRow();
  }

  ForeignRun& run_;
  bool processes_;
  char separator_ = ',';
  std::vector<Field> fields_;
};

template <bool kProcesses>
std::unique_ptr<LineFormat> Make(ForeignRun& run, const ImportOptions& options) {
  return std::make_unique<SmiCsv>(run, options, kProcesses);
}

// How many of the names in the first lines are nvidia-smi's.
int RecogniseHeader(const SourceHead& head, bool processes) {
  for (const std::string_view line : head.Lines()) {
    size_t known = 0;
    size_t own = 0;
    const auto fields = CsvFields(line, CsvSeparator(line), 0);
    for (const std::string& text : fields) {
      const std::string name = ReadHeaderField(text).name;
      const bool dotted = name.find('.') != std::string::npos;
      const auto is = [&name](const auto& entry) { return entry.name == name; };
      const bool gpu = std::any_of(std::begin(kGpuColumns), std::end(kGpuColumns), is);
      const bool process = std::any_of(std::begin(kProcessColumns), std::end(kProcessColumns), is);
      known += gpu || process || std::any_of(std::begin(kRoles), std::end(kRoles), is) ? 1 : 0;
      own += processes ? (process ? 1 : 0) : (gpu && dotted ? 1 : 0);
    }
    if (own > 0 && known * 2 >= std::min<size_t>(fields.size(), 8)) return 90;
  }
  return 0;
}

constexpr std::string_view kNoNumbers =
    "give the output of nvidia-smi with --format=csv; for one without header name its fields with "
    "--columns, as after --query-gpu=";

base::Result<ImportSummary> ImportGpus(const std::string& path, const ImportOptions& options,
                                       model::Sink& sink) {
  return ImportLines({.tool = "nvidia-smi query-gpu",
                      .default_interval_s = 1,
                      .nothing_usable = kNoNumbers,
                      .Make = &Make<false>},
                     path, options, sink);
}

base::Result<ImportSummary> ImportApps(const std::string& path, const ImportOptions& options,
                                       model::Sink& sink) {
  return ImportLines({.tool = "nvidia-smi query-compute-apps",
                      .default_interval_s = 1,
                      .nothing_usable = kNoNumbers,
                      .Make = &Make<true>},
                     path, options, sink);
}

}  // namespace

const ImporterDef kNvidiaSmiCsvImporter{
    .name = "nvidia-smi-csv",
    .summary = "nvidia-smi --query-gpu=... --format=csv -l 1",
    .Recognise = [](const SourceHead& head) { return RecogniseHeader(head, false); },
    .Import = &ImportGpus};

const ImporterDef kNvidiaSmiAppsImporter{
    .name = "nvidia-smi-apps",
    .summary = "nvidia-smi --query-compute-apps=... --format=csv -l 1",
    .Recognise = [](const SourceHead& head) { return RecogniseHeader(head, true); },
    .Import = &ImportApps};

}  // namespace epochmeter::ingest
