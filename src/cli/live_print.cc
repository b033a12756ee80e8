// SPDX-License-Identifier: Apache-2.0
#include "cli/live_print.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "cli/say.h"
#include "model/run.h"
#include "render/live_line.h"

namespace epochmeter::cli {
namespace {

// Of what a line or a terminal can show; a client may send any number.
constexpr size_t kMostRanks = 1024;
constexpr size_t kMostScalars = 64;

// A running mean and maximum of what came since an epoch began.
struct Running {
  double sum = 0;
  double max = 0;
  uint64_t count = 0;
  void Add(double value) {
    max = count == 0 ? value : std::max(max, value);
    sum += value;
    ++count;
  }
  std::optional<double> Mean() const {
    return count == 0 ? std::optional<double>() : sum / static_cast<double>(count);
  }
  std::optional<double> Max() const { return count == 0 ? std::optional<double>() : max; }
};

// The last values of the host's CPU seconds: busy share between two moments.
struct CpuReading {
  double busy_s = 0, all_s = 0;
};

struct OpenEpoch {
  int64_t epoch = 0;
  int64_t begin_ns = 0, end_ns = 0;
  uint64_t steps = 0;
  CpuReading cpu_at_begin;
  Running utilization, memory, temperature, ram;
  std::map<std::string, double> scalars;
};

class Printer : public LivePrinter {
 public:
  Printer(int64_t period_ns, base::UniqueFd file, std::string path)
      : period_ns_(period_ns), file_(std::move(file)), path_(std::move(path)) {
    next_due_ns_ = base::MonotonicNs() + period_ns_;
  }
  ~Printer() override {
    for (auto& [rank, epoch] : ended_) PrintEpoch(rank, epoch);
  }

  int64_t NextDueNs() const override { return next_due_ns_; }

  void Tick(int64_t now_ns) override {
    if (now_ns < next_due_ns_) return;
    next_due_ns_ = now_ns + period_ns_;
    for (const auto& [entity, gpu] : gpus_) {
      const bool read = gpu.utilization_ratio || gpu.memory_used_bytes;
      if (!read && others_.contains(entity)) continue;  // another job's
      Print(render::LiveGpuLine(base::WallNs(), gpu));
    }
  }

  void Write(const model::Record& record) override {
    if (const auto* entity = std::get_if<model::EntityDef>(&record)) {
      AddEntity(*entity);
    } else if (const auto* series = std::get_if<model::SeriesDef>(&record)) {
      series_[series->id] = *series;
    } else if (const auto* samples = std::get_if<model::Samples>(&record)) {
      for (const model::SampleValue& sample : samples->values) AddValue(sample);
    } else if (const auto* event = std::get_if<model::Event>(&record)) {
      AddEvent(*event);
    } else if (const auto* state = std::get_if<model::SeriesState>(&record)) {
      if (state->condition != model::SeriesCondition::kOk) Forget(state->series);
    }
  }

 private:
  void AddEntity(const model::EntityDef& entity) {
    if (entity.scope != model::Scope::kGpu) return;
    render::LiveGpu& gpu = gpus_[entity.id];
    for (const auto& [key, value] : entity.labels) {
      if (key == "gpu") gpu.gpu = static_cast<int32_t>(base::ParseInt(value).value_or(0));
    }
    others_.erase(entity.id);
    for (const auto& [key, value] : entity.attributes) {
      if (key == "job" && value == "no") others_.insert(entity.id);
    }
  }

  void AddValue(const model::SampleValue& sample) {
    const auto found = series_.find(sample.series);
    if (found == series_.end()) return;
    const model::SeriesDef& def = found->second;
    const std::string& field = def.metric.field;
    if (def.metric.scope == model::Scope::kGpu) AddGpuValue(def.entity, field, sample.value);
    if (def.metric.scope == model::Scope::kHost) AddHostValue(def, sample.value);
  }

  // The value of a series that has none any more is not the current one.
  void Forget(model::SeriesId series) {
    const auto found = series_.find(series);
    if (found == series_.end()) return;
    const auto gpu = gpus_.find(found->second.entity);
    if (gpu == gpus_.end()) return;
    const int32_t index = gpu->second.gpu;
    gpu->second = render::LiveGpu();
    gpu->second.gpu = index;
  }

  void AddGpuValue(model::EntityId entity, const std::string& field, double value) {
    render::LiveGpu& gpu = gpus_[entity];
    if (field == "utilization_ratio") gpu.utilization_ratio = value;
    if (field == "memory_used_bytes") gpu.memory_used_bytes = value;
    if (field == "memory_total_bytes") gpu.memory_total_bytes = value;
    if (field == "power_w") gpu.power_w = value;
    if (field == "temperature_c") gpu.temperature_c = value;
    if (field == "sm_active_ratio") gpu.sm_active_ratio = value;
    for (auto& [rank, epoch] : open_) {
      if (field == "utilization_ratio") epoch.utilization.Add(value);
      if (field == "memory_used_bytes") epoch.memory.Add(value);
      if (field == "temperature_c") epoch.temperature.Add(value);
    }
  }

  void AddHostValue(const model::SeriesDef& def, double value) {
    if (base::StartsWith(def.metric.label, "mode=")) cpu_[def.metric.label] = value;
    if (def.metric.field == "memory_total_bytes") memory_total_ = value;
    if (def.metric.field != "memory_available_bytes" || !memory_total_) return;
    for (auto& [rank, epoch] : open_) epoch.ram.Add(*memory_total_ - value);
  }

  CpuReading Cpu() const {
    CpuReading reading;
    for (const auto& [label, seconds] : cpu_) {
      reading.all_s += seconds;
      if (label != "mode=idle" && label != "mode=iowait") reading.busy_s += seconds;
    }
    return reading;
  }

  void AddEvent(const model::Event& event) {
    const model::ProcessKey rank = model::ProcessOf(event);
    if (open_.size() + ended_.size() > kMostRanks) return;
    if (event.kind == model::EventKind::kEpochBegin) {
      FlushEnded(rank);
      seen_.insert(rank);
      OpenEpoch& epoch = open_[rank] = OpenEpoch();
      epoch.epoch = event.epoch.value_or(0);
      epoch.begin_ns = event.t_ns;
      epoch.cpu_at_begin = Cpu();
    } else if (event.kind == model::EventKind::kStep && open_.count(rank) > 0) {
      ++open_[rank].steps;
      TakeScalars(event, "", open_[rank]);
    } else if (event.kind == model::EventKind::kEpochEnd && open_.count(rank) > 0) {
      TakeScalars(event, "", open_[rank]);
      open_[rank].end_ns = event.t_ns;
      ended_[rank] = std::move(open_[rank]);
      open_.erase(rank);
    } else if (event.kind == model::EventKind::kPhaseEnd && event.name == "eval") {
      if (ended_.count(rank) > 0) TakeScalars(event, "val_", ended_[rank]);
      FlushEnded(rank);
    } else if (event.kind == model::EventKind::kTrainEnd) {
      FlushEnded(rank);
    }
  }

  static void TakeScalars(const model::Event& event, const std::string& prefix, OpenEpoch& epoch) {
    constexpr std::string_view kScalar = "scalar.";
    for (const model::EventField& field : event.fields) {
      const auto number = event.Number(field.key);
      if (epoch.scalars.size() > kMostScalars) return;
      if (number && base::StartsWith(field.key, kScalar)) {
        epoch.scalars[prefix + field.key.substr(kScalar.size())] = *number;
      }
    }
  }

  // An epoch is printed once its validation is known, or something else has begun.
  void FlushEnded(const model::ProcessKey& rank) {
    const auto found = ended_.find(rank);
    if (found == ended_.end()) return;
    PrintEpoch(rank, found->second);
    ended_.erase(found);
  }

  void PrintEpoch(const model::ProcessKey& key, const OpenEpoch& epoch) {
    render::LiveEpoch line;
    if (key.rank != model::kNoRank) line.rank = key.rank;
    line.many_ranks = seen_.size() > 1;
    line.epoch = epoch.epoch;
    line.duration_s = base::SecondsFromNs(epoch.end_ns - epoch.begin_ns);
    if (epoch.steps > 0) line.steps = epoch.steps;
    const CpuReading now = Cpu();
    const double all_s = now.all_s - epoch.cpu_at_begin.all_s;
    if (all_s > 0 && epoch.cpu_at_begin.all_s > 0) {
      line.cpu_ratio = (now.busy_s - epoch.cpu_at_begin.busy_s) / all_s;
    }
    line.memory_used_bytes = epoch.ram.Mean();
    line.gpu_utilization_ratio = epoch.utilization.Mean();
    line.gpu_memory_bytes = epoch.memory.Max();
    line.temperature_c = epoch.temperature.Max();
    for (const auto& scalar : epoch.scalars) line.scalars.push_back(scalar);
    Print(render::LiveEpochLine(base::WallNs(), line));
  }

  void Print(const std::string& line) {
    const std::string text = line + "\n";
    SayAtOnce(line);
    if (!file_.valid()) return;
    if (!base::WriteAll(file_.get(), text, path_).ok()) file_.Reset();
  }

  int64_t period_ns_;
  base::UniqueFd file_;
  std::string path_;
  int64_t next_due_ns_ = 0;
  std::map<model::EntityId, render::LiveGpu> gpus_;
  std::set<model::EntityId> others_;  // GPUs that are not the job's
  std::map<model::SeriesId, model::SeriesDef> series_;
  std::map<std::string, double> cpu_;  // by label
  std::optional<double> memory_total_;
  std::map<model::ProcessKey, OpenEpoch> open_, ended_;
  std::set<model::ProcessKey> seen_;  // that have begun an epoch
};

}  // namespace

base::Result<std::unique_ptr<LivePrinter>> LivePrinter::Make(int64_t period_ns,
                                                             const std::string& path) {
  base::UniqueFd file;
  if (!path.empty()) {
    EPM_ASSIGN(file, base::OpenFile(path, O_WRONLY | O_CREAT | O_APPEND));
  }
  return std::unique_ptr<LivePrinter>(std::make_unique<Printer>(period_ns, std::move(file), path));
}

}  // namespace epochmeter::cli
