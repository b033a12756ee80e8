// SPDX-License-Identifier: Apache-2.0
// Imports an offline run of W&B: the folder `offline-run-...` or its `run-ID.wandb`. Taken are the
// system metrics of GPUs, logged numbers as scalars, console output and the exit code.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/strings.h"
#include "ingest/client_metrics.h"
#include "ingest/foreign_run.h"
#include "ingest/wandb_log.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_health_metrics.h"
#include "model/gpu_link_metrics.h"
#include "model/gpu_power_metrics.h"
#include "model/limits.h"

namespace epochmeter::ingest {
namespace {

namespace metrics = model::gpu;
namespace fs = std::filesystem;

constexpr std::string_view kTool = "wandb";
constexpr size_t kMostBytes = size_t{1} << 30;
constexpr uint64_t kMostSeconds = model::kMostWallNs / base::kNsPerSecond;  // since 1970

constexpr LossReason kDamaged{
    "import.damaged", model::LossSeverity::kDataLoss, "records",
    "These records are damaged or torn, as after a crash; everything else was imported."};
constexpr LossReason kNoNumber{
    "import.no_number", model::LossSeverity::kInfo, "values",
    "Logged values that are no numbers (images, tables, texts) were left out."};

constexpr LossReason kUnknownScale{
    "import.unknown_scale", model::LossSeverity::kDataLoss, "values",
    "These activity values may be parts or percents: W&B wrote both under the same names, and none "
    "of this run is above 1.05, which would tell; they were left out."};

// Errors of the memory are left out: its versions counted the board's life or since the driver's
// start.
constexpr ForeignColumn kGpuColumns[] = {
    {"gpu", &metrics::kUtilization, "%"},
    {"memory", &metrics::kMemoryActivity, "%"},
    {"memoryAllocatedBytes", &metrics::kMemoryUsed, "B"},
    {"temp", &metrics::kTemperature, "C"},
    {"powerWatts", &metrics::kPower, "W"},
    {"enforcedPowerLimitWatts", &metrics::kPowerLimit, "W"},
    {"smClock", &metrics::kSmClock, "MHz"},
    {"memoryClock", &metrics::kMemoryClock, "MHz"},
    {"graphicsClock", &metrics::kGraphicsClock, "MHz"},
    {"fanSpeed", &metrics::kFanSpeed, "%"},
    {"encoderUtilization", &metrics::kEncoder, "%"},
    {"memoryTotal", &metrics::kMemoryTotal, "B"},
    {"pcieLinkGen", &metrics::kPcieGeneration, ""},
    {"pcieLinkWidth", &metrics::kPcieWidth, ""},
    {"maxPcieLinkGen", &metrics::kPcieMaxGeneration, ""},
    {"maxPcieLinkWidth", &metrics::kPcieMaxWidth, ""},
    {"pcieTxBytes", &metrics::kPcieTransmitRate, "B/s"},
    {"pcieRxBytes", &metrics::kPcieReceiveRate, "B/s"},
    {"nvlinkTxBytes", &metrics::kNvlinkTransmitRate, "B/s"},
    {"nvlinkRxBytes", &metrics::kNvlinkReceiveRate, "B/s"},
};
// Percents from NVML and by newer versions, parts of 1 from DCGM by the first ones that had them.
constexpr ForeignColumn kActivityColumns[] = {
    {"smActive", &metrics::kSmActive, "%"},
    {"smOccupancy", &metrics::kSmOccupancy, "%"},
    {"pipeTensorActive", &metrics::kTensorActive, "%"},
    {"pipeTensorHmmaActive", &metrics::kTensorHalfActive, "%"},
    {"dramActive", &metrics::kDramActive, "%"},
    {"pipeFp64Active", &metrics::kFp64Active, "%"},
    {"pipeFp32Active", &metrics::kFp32Active, "%"},
    {"pipeFp16Active", &metrics::kFp16Active, "%"},
};
// A part of 1 is never above, but for rounding.
constexpr double kMostAsPart = 1.05;
constexpr ForeignColumn kHostCpu{"cpu", &kHostCpuUsed, "%"};

struct Item {
  std::string key;
  std::string_view value;  // JSON
};

// Field numbers are those of wandb_internal.proto.
Item ReadItem(std::string_view message) {
  Item item;
  ProtoFields fields(message);
  while (fields.Next()) {
    if (fields.number() == 1) item.key = fields.bytes();
    if (fields.number() == 2) {
      item.key += (item.key.empty() ? "" : ".") + std::string(fields.bytes());
    }
    if (fields.number() == 16) item.value = fields.bytes();
  }
  return item;
}

// A JSON number, also Python's NaN and infinities.
std::optional<double> ReadNumber(std::string_view json) {
  json = base::Trim(json);
  if (json == "NaN" || json == "\"NaN\"") return std::nan("");
  if (json == "Infinity" || json == "\"Infinity\"") return HUGE_VAL;
  if (json == "-Infinity" || json == "\"-Infinity\"") return -HUGE_VAL;
  return base::ParseDouble(json);
}

std::optional<int64_t> ReadTimestamp(std::string_view message) {
  uint64_t seconds = 0;
  uint64_t nanos = 0;
  ProtoFields fields(message);
  while (fields.Next()) {
    if (fields.number() == 1) seconds = fields.integer();
    if (fields.number() == 2) nanos = fields.integer();
  }
  if (seconds == 0 || seconds > kMostSeconds || nanos >= 1'000'000'000) return std::nullopt;
  return static_cast<int64_t>(seconds) * base::kNsPerSecond + static_cast<int64_t>(nanos);
}

class Records {
 public:
  // `most_active` is the highest activity value of the file, which the first reading finds.
  Records(ForeignRun& run, double* most_active) : run_(run), most_active_(*most_active) {}

  // False when the message can't be read.
  bool Take(std::string_view message) {
    ProtoFields fields(message);
    while (fields.Next()) {
      switch (fields.number()) {
        case 2:
          TakeHistory(fields.bytes());
          break;
        case 4:
        case 13:
          TakeOutput(fields.bytes());
          break;
        case 7:
          TakeStats(fields.bytes());
          break;
        case 17:
          TakeRun(fields.bytes());
          break;
        case 18:
          TakeExit(fields.bytes());
          break;
        default:
          break;
      }
    }
    return fields.good();
  }

  model::RunEnd end() const {
    model::RunEnd end{.t_ns = 0, .reason = "lost", .exit_code = {}, .signal = {}};
    if (exit_code_) end.reason = "exited";
    end.exit_code = exit_code_;
    return end;
  }

 private:
  void TakeRun(std::string_view message) {
    ProtoFields fields(message);
    while (fields.Next()) {
      if (fields.number() == 1) run_.Fact("wandb_run_id", fields.bytes());
      if (fields.number() == 3) run_.Fact("project", fields.bytes());
      if (fields.number() == 8) run_.Fact("display_name", fields.bytes());
      if (fields.number() == 13) run_.Fact("host", fields.bytes());
    }
  }

  void TakeExit(std::string_view message) {
    exit_code_ = 0;  // the default is not written
    ProtoFields fields(message);
    while (fields.Next()) {
      if (fields.number() == 1) exit_code_ = static_cast<int32_t>(fields.integer());
    }
  }

  void TakeOutput(std::string_view message) {
    RowTime time;
    std::string_view line;
    uint8_t stream = 2;  // the default is not written
    ProtoFields fields(message);
    while (fields.Next()) {
      if (fields.number() == 1 && fields.integer() == 1) stream = 1;
      if (fields.number() == 2) time.wall_ns = ReadTimestamp(fields.bytes());
      if (fields.number() == 3) line = fields.bytes();
    }
    if (line.empty()) return;
    const auto t_ns = run_.Place(time);
    if (t_ns) run_.Text(*t_ns, stream, std::string(line));
  }

  void TakeStats(std::string_view message) {
    RowTime time;
    std::vector<Item> items;
    ProtoFields fields(message);
    while (fields.Next()) {
      if (fields.number() == 2) time.wall_ns = ReadTimestamp(fields.bytes());
      if (fields.number() == 3) items.push_back(ReadItem(fields.bytes()));
    }
    std::sort(items.begin(), items.end(),
              [](const Item& a, const Item& b) { return a.key < b.key; });
    std::optional<Subject> subject;  // of the row that is open
    for (const Item& item : items) {
      Subject its;
      const ForeignColumn* column = FindColumn(item.key, &its);
      const auto number = ReadNumber(item.value);
      if (column == nullptr || !number) continue;
      if (!subject || subject->Key() != its.Key()) {
        if (subject) run_.EndRow();
        subject = its;
        if (!run_.Begin(time, its)) return;
      }
      TakeNumber(*column, *number);
    }
    if (subject) run_.EndRow();
  }

  static bool IsActivity(const ForeignColumn& column) {
    return &column >= std::begin(kActivityColumns) && &column < std::end(kActivityColumns);
  }

  void TakeNumber(const ForeignColumn& column, double number) {
    if (!IsActivity(column)) {
      run_.Number(column, number);
      return;
    }
    if (!run_.repeating()) most_active_ = std::max(most_active_, number);
    // 0 is 0 in both.
    const bool told = most_active_ > kMostAsPart || most_active_ == 0;
    if (run_.repeating() && !told) {
      run_.Lost(kUnknownScale, 1, column.name);
    } else {
      run_.Number(column, number);
    }
  }

  const ForeignColumn* FindColumn(const std::string& key, Subject* subject) {
    if (key == kHostCpu.name) {
      subject->kind = Subject::Kind::kHost;
      return &kHostCpu;
    }
    const auto parts = base::Split(key, '.');
    subject->index = parts.size() == 3 ? base::ParseInt(parts[1]) : std::nullopt;
    if (parts[0] == "gpu" && subject->index) {
      for (const ForeignColumn& column : kGpuColumns) {
        if (column.name == parts[2]) return &column;
      }
      for (const ForeignColumn& column : kActivityColumns) {
        if (column.name == parts[2]) return &column;
      }
    }
    // gpu.process.* are the whole device's numbers again, shown while the process is on it.
    run_.Unknown(key);
    return nullptr;
  }

  void TakeHistory(std::string_view message) {
    model::Event event{.kind = model::EventKind::kScalar};
    RowTime time;
    ProtoFields fields(message);
    while (fields.Next()) {
      if (fields.number() == 2) TakeStep(fields.bytes(), &event);
      if (fields.number() == 1) TakeValue(ReadItem(fields.bytes()), &event, &time);
    }
    if (event.fields.empty()) return;
    const auto t_ns = run_.Place(time);
    if (!t_ns) return;
    event.t_ns = *t_ns;
    run_.Event(std::move(event));
  }

  static void TakeStep(std::string_view message, model::Event* event) {
    ProtoFields fields(message);
    while (fields.Next()) {
      const auto step = static_cast<int64_t>(fields.integer());
      if (fields.number() == 1 && step >= 0) event->step = step;
    }
  }

  void TakeValue(const Item& item, model::Event* event, RowTime* time) {
    const auto number = ReadNumber(item.value);
    const bool whole = number && *number >= 0 && *number < 1e15 && *number == std::floor(*number);
    if (!number) {
      run_.Lost(kNoNumber, 1, item.key);
    } else if (item.key == "_timestamp") {
      const bool good = *number > 0 && *number < static_cast<double>(kMostSeconds);
      if (good) time->wall_ns = static_cast<int64_t>(std::llround(*number * 1e6)) * 1000;
    } else if (item.key == "_step") {
      if (whole) event->step = static_cast<int64_t>(*number);
    } else if (item.key == "epoch" && whole) {
      event->epoch = static_cast<int64_t>(*number);
    } else if (!base::StartsWith(item.key, "_")) {
      event->fields.push_back({"scalar." + base::ToValidUtf8(item.key), *number});
    }
  }

  ForeignRun& run_;
  double& most_active_;
  std::optional<int32_t> exit_code_;
};

model::RunEnd ReadAll(std::string_view bytes, double* most_active, ForeignRun* run) {
  run->SetUnordered();
  WandbLog log(bytes);
  Records records(*run, most_active);
  std::string_view message;
  while (true) {
    run->SetPlace("byte " + std::to_string(log.offset()));
    const WandbLog::Next next = log.Read(&message);
    if (next == WandbLog::Next::kEnd) break;
    if (next == WandbLog::Next::kBad || !records.Take(message)) {
      run->Lost(kDamaged, 1, "near byte " + std::to_string(log.offset()));
    }
  }
  return records.end();
}

// The .wandb file in a run's folder; the path itself when it is a file.
base::Result<std::string> FindLog(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".wandb") return entry.path().string();
  }
  return base::Error{.what = "this is no run of W&B",
                     .where = path,
                     .why = error ? error.message() : "no run-ID.wandb is in it",
                     .what_to_do = "give the folder offline-run-... or the file run-ID.wandb"};
}

base::Result<ImportSummary> Import(const std::string& path, const ImportOptions& options,
                                   model::Sink& sink) {
  EPM_ASSIGN(const std::string file, FindLog(path));
  EPM_ASSIGN(const std::string bytes, base::ReadFile(file, kMostBytes));
  if (!WandbLog::HasHeader(bytes)) {
    return base::Error{.what = "this is no run of W&B",
                       .where = file,
                       .why = "it does not begin as a .wandb file of version 0",
                       .what_to_do = "give the folder offline-run-... or the file run-ID.wandb"};
  }
  model::MemorySink nowhere;
  ForeignRun first(kTool, options, nowhere);
  double most_active = 0;
  ReadAll(bytes, &most_active, &first);
  if (first.values() == 0) {
    return base::Error{.what = "nothing to import",
                       .where = file,
                       .why = "no record holds a system metric, a logged number or output",
                       .what_to_do = "look whether the run was started with system metrics on"};
  }
  first.Settle(0, 15);
  ForeignRun run(kTool, options, sink);
  run.Repeat(first, file);
  run.Finish(ReadAll(bytes, &most_active, &run));
  return run.summary();
}

int Recognise(const SourceHead& head) {
  if (!head.folder) return WandbLog::HasHeader(head.bytes) ? 100 : 0;
  const auto found = FindLog(head.path);
  return found.ok() ? 95 : 0;
}

}  // namespace

const ImporterDef kWandbImporter{.name = "wandb",
                                 .summary = "an offline run of W&B (offline-run-... or *.wandb)",
                                 .Recognise = &Recognise,
                                 .Import = &Import};

}  // namespace epochmeter::ingest
