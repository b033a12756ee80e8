// SPDX-License-Identifier: Apache-2.0
// Imports the `<job>.gpu.log` of `paddle.distributed.launch`: three CSV tables in one file, each
// with its header. GPUs and their names and, once, the processes; then a line a GPU every few
// seconds (5, older versions 30).
#include <algorithm>
#include <map>

#include "base/strings.h"
#include "ingest/line_import.h"
#include "model/gpu_metrics.h"

namespace epochmeter::ingest {
namespace {

namespace metrics = model::gpu;

constexpr ForeignColumn kColumns[] = {
    {"utilization_gpu", &metrics::kUtilization, "%"},
    {"memory_total", &metrics::kMemoryTotal, "MiB"},
    {"memory_used", &metrics::kMemoryUsed, "MiB",
     "by nvidia-smi; what the driver reserves is in it before driver 510"},
    {"memory_free", &metrics::kMemoryFree, "MiB"},
};
constexpr ForeignColumn kProcessMemory{"used_memory", &metrics::kOfProcessMemory, "MiB"};

class GpuLog : public LineFormat {
 public:
  explicit GpuLog(ForeignRun& run) : run_(run) {}

  void Line(std::string_view line) override {
    line = base::Trim(line);
    if (line.empty()) return;
    auto cells = CsvFields(line, ',', names_.size());
    if (IsHeader(cells)) {
      names_ = std::move(cells);
      return;
    }
    // Process names may hold commas; they stand second of five.
    while (IsProcess() && cells.size() > names_.size()) {
      cells[1] += "," + cells[2];
      cells.erase(cells.begin() + 2);
    }
    if (names_.empty() || cells.size() != names_.size()) {
      run_.BadLine(names_.empty() ? "no header before it" : "not as many fields as its table has");
    } else if (IsProcess()) {
      TakeProcess(cells);
    } else if (Has("utilization_gpu")) {
      TakeSample(cells);
    } else {
      TakeGpu(cells);
    }
  }

 private:
  static bool IsHeader(const std::vector<std::string>& cells) {
    return cells.size() >= 5 && (cells[0] == "index" || cells[0] == "pid");
  }
  bool Has(std::string_view name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  bool IsProcess() const { return Has("pid"); }
  std::string_view Get(const std::vector<std::string>& cells, std::string_view name) const {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return cells[i];
    }
    return {};
  }

  void TakeGpu(const std::vector<std::string>& cells) {
    const auto index = base::ParseInt(Get(cells, "index"));
    if (!index) {
      run_.BadLine("its GPU can't be read");
      return;
    }
    std::map<std::string, std::string> about;
    for (const char* name : {"name", "driver_version", "uuid"}) about[name] = Get(cells, name);
    if (gpus_.size() < kMostGpus) gpus_[*index] = std::move(about);
  }

  // The processes come before the first time; they are of the first sample.
  void TakeProcess(const std::vector<std::string>& cells) {
    const auto pid = base::ParseInt(Get(cells, "pid"));
    if (!pid || *pid <= 0) {
      run_.BadLine("its process can't be read");
      return;
    }
    if (processes_.size() >= kMostGpus) return;
    processes_.push_back({.pid = *pid,
                          .uuid = std::string(Get(cells, "gpu_uuid")),
                          .name = std::string(Get(cells, "process_name")),
                          .used = std::string(Get(cells, "used_memory"))});
  }

  void WriteProcesses(const RowTime& time) {
    for (const Process& process : processes_) {
      Subject subject{.kind = Subject::Kind::kProcess, .uuid = process.uuid, .pid = process.pid};
      for (const auto& [index, about] : gpus_) {
        if (about.at("uuid") == process.uuid) subject.index = index;
      }
      if (!run_.Begin(time, subject)) continue;
      run_.Cell(kProcessMemory, process.used);
      run_.Describe("process_name", process.name);
      run_.EndRow();
    }
    processes_.clear();
  }

  void TakeSample(const std::vector<std::string>& cells) {
    RowTime time{.wall_ns = run_.clock().Parse(Get(cells, "timestamp")), .of_day_ns = {}};
    Subject subject{.index = base::ParseInt(Get(cells, "index"))};
    if (!time.wall_ns || !subject.index) {
      run_.BadLine("its time or GPU can't be read");
      return;
    }
    WriteProcesses(time);
    const auto gpu = gpus_.find(*subject.index);
    if (gpu != gpus_.end()) subject.uuid = gpu->second["uuid"];
    if (!run_.Begin(time, subject)) return;
    for (const ForeignColumn& column : kColumns) {
      const std::string_view cell = Get(cells, column.name);
      if (!cell.empty()) run_.Cell(column, cell);
    }
    if (gpu != gpus_.end()) {
      run_.Describe("name", gpu->second["name"]);
      run_.Describe("driver_version", gpu->second["driver_version"]);
    }
    run_.EndRow();
  }

  static constexpr size_t kMostGpus = 4096;
  struct Process {
    int64_t pid;
    std::string uuid, name, used;
  };

  ForeignRun& run_;
  std::vector<std::string> names_;  // of the table that lines are of now
  std::map<int64_t, std::map<std::string, std::string>> gpus_;
  std::vector<Process> processes_;
};

int Recognise(const SourceHead& head) {
  const auto lines = head.Lines();
  return std::any_of(lines.begin(), lines.end(),
                     [](std::string_view line) {
                       return base::StartsWith(line, "index,utilization_gpu,memory_total") ||
                              base::StartsWith(line, "index,uuid,driver_version,name,gpu_serial");
                     })
             ? 98
             : 0;
}

base::Result<ImportSummary> Import(const std::string& path, const ImportOptions& options,
                                   model::Sink& sink) {
  return ImportLines(
      {.tool = "paddle gpu.log",
       .default_interval_s = 5,
       .nothing_usable = "give the gpu.log of paddle.distributed.launch; one without lines of "
                         "utilization_gpu was written on a machine whose nvidia-smi failed",
       .Make = [](ForeignRun& run, const ImportOptions& /*options*/)
           -> std::unique_ptr<LineFormat> { return std::make_unique<GpuLog>(run); }},
      path, options, sink);
}

}  // namespace

const ImporterDef kPaddleGpuLogImporter{
    .name = "paddle-gpu-log",
    .summary = "the *.gpu.log that paddle.distributed.launch writes",
    .Recognise = &Recognise,
    .Import = &Import};

}  // namespace epochmeter::ingest
