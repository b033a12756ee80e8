// SPDX-License-Identifier: Apache-2.0
// Which processes hold device memory: about 9 us on a data centre GPU, milliseconds on others, so
// slow tier. Pids are those of the driver's pid namespace: in a container they are the host's, or
// the list is empty. What can't be known is absent, never 0.
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

using model::MetricDef;
using model::Scope;

enum MetricIndex : size_t { kSum, kCount, kOfProcess };

constexpr std::array kMetrics = {model::gpu::kProcessMemory, model::gpu::kProcessCount,
                                 model::gpu::kOfProcessMemory};
constexpr std::span<const MetricDef> kGpuMetrics(kMetrics.data(), 2);

constexpr size_t kList = 0;
constexpr size_t kSumCall = 1;
constexpr std::array<CallDef, 2> kCalls = {{
    {"nvmlDeviceGetComputeRunningProcesses", kSum, 2},
    {"nvmlDeviceGetComputeRunningProcesses memory", kSum, 1},
}};

constexpr uint64_t kNoMemory = UINT64_MAX;
constexpr uint32_t kPidMax = 4194304;         // the kernel's PID_MAX_LIMIT
constexpr size_t kMostProcesses = 256;        // entities a run may get from one source
constexpr uint64_t kUnexplained = 64U << 20;  // memory in use that an empty list can't go with

struct Entry {
  uint32_t pid;
  uint64_t memory;
};

// All layouts have the pid at offset 0 and the memory at 8; they differ in length.
size_t EntrySize(ProcessLayout layout) {
  switch (layout) {
    case ProcessLayout::kV1:
      return sizeof(NvmlProcessInfoV1);
    case ProcessLayout::kR535:
      return sizeof(NvmlProcessInfoR535);
    default:
      return sizeof(NvmlProcessInfo);
  }
}

NvmlReturn ReadList(const Api& api, NvmlDevice handle, std::vector<Entry>* out) {
  if (api.compute_processes == nullptr) return kNvmlFunctionNotFound;
  const size_t size = EntrySize(api.process_layout);
  uint32_t room = 32;
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::vector<uint64_t> buffer(room * sizeof(NvmlProcessInfoR535) / sizeof(uint64_t));
    uint32_t count = room;
    const NvmlReturn rc = api.compute_processes(handle, &count, buffer.data());
    if (rc == kNvmlInsufficientSize && count < 100000) {
      room = 2 * std::max(count, room) + 8;
      continue;
    }
    if (rc != kNvmlSuccess) return rc;
    const auto* bytes = reinterpret_cast<const char*>(buffer.data());
    for (uint32_t i = 0; i < std::min(count, room); ++i) {
      Entry entry{};
      std::memcpy(&entry.pid, bytes + i * size, sizeof entry.pid);
      std::memcpy(&entry.memory, bytes + i * size + 8, sizeof entry.memory);
      out->push_back(entry);
    }
    return kNvmlSuccess;
  }
  return kNvmlInsufficientSize;
}

// A pid or size that can't be means that the whole list was misread: old drivers changed the layout
// under the same name, and some return uninitialised entries.
bool IsPlausible(const std::vector<Entry>& list, uint64_t total) {
  for (const Entry& entry : list) {
    if (entry.pid == 0 || entry.pid > kPidMax) return false;
    if (entry.memory != kNoMemory && total > 0 && entry.memory > total) return false;
  }
  return true;
}

NvmlMemoryV2 ReadMemory(const Api& api, NvmlDevice handle) {
  NvmlMemoryV2 memory{};
  memory.version = kNvmlMemoryV2Version;
  if (api.memory_v2 == nullptr || api.memory_v2(handle, &memory) != kNvmlSuccess) return {};
  return memory;
}

class ProcessSource final : public Source {
 public:
  explicit ProcessSource(const SourceContext& context)
      : session_(*context.nvml),
        registry_(context.registry),
        sink_(context.sink),
        period_ns_(TierPeriodNs(Tier::kSlow, context.tick_ns)),
        group_(context, {.metrics = kGpuMetrics, .calls = kCalls, .period_ns = period_ns_}) {}

  base::Result<> Sample(model::Samples& out) override {
    session_.Maintain(out.t_ns);
    for (Device& device : session_.devices()) {
      SampleDevice({session_.api(), session_, group_, device, out});
    }
    return {};
  }

 private:
  struct Known {
    model::SeriesId series = 0;
    int64_t seen_ns = 0;
    model::SeriesCondition condition = model::SeriesCondition::kOk;
  };

  void SampleDevice(const Reading& reading) {
    const int64_t t_ns = reading.out.t_ns;
    if (!reading.group.Due(reading.device, kList, t_ns)) return;
    std::vector<Entry> list;
    const NvmlReturn rc = ReadList(reading.api, reading.device.handle, &list);
    if (!reading.group.Took(reading.device, kList, rc, t_ns)) return;
    const NvmlMemoryV2 memory = ReadMemory(reading.api, reading.device.handle);
    if (!IsPlausible(list, memory.total)) {
      reading.group.Drop(reading.device, kSum, "process list with impossible entries", t_ns);
      return;
    }
    if (list.empty() && memory.used > kUnexplained) {
      reading.group.Absent(reading.device, kList,
                           "the driver lists no compute process although memory is in use: they "
                           "are hidden from this container, or ended without freeing it",
                           t_ns);
    } else {
      PutList(reading, list);
    }
    TellGone(reading.device, t_ns);
  }

  void PutList(const Reading& reading, const std::vector<Entry>& list) {
    std::map<uint32_t, uint64_t> by_pid;  // a pid may be listed once per instance
    bool sum_known = true;
    uint64_t sum = 0;
    for (const Entry& entry : list) {
      uint64_t& memory = by_pid[entry.pid];
      if (entry.memory == kNoMemory || memory == kNoMemory) {
        memory = kNoMemory;
        sum_known = false;
      } else {
        memory += entry.memory;
        sum += entry.memory;
      }
    }
    reading.group.Put(reading.device, kCount, static_cast<double>(by_pid.size()), reading.out);
    if (sum_known) {
      reading.group.Put(reading.device, kSum, static_cast<double>(sum), reading.out);
    } else {
      reading.group.Absent(reading.device, kSumCall,
                           "the driver does not tell memory per process (WSL, WDDM, MIG parent)",
                           reading.out.t_ns);
    }
    for (const auto& [pid, memory] : by_pid) PutProcess(reading, pid, memory);
  }

  void PutProcess(const Reading& reading, uint32_t pid, uint64_t memory) {
    const auto key = std::make_pair(reading.device.uuid, pid);
    auto found = known_.find(key);
    if (found == known_.end()) {
      if (known_.size() >= kMostProcesses) return CountNotKept(reading.out.t_ns);
      found = known_.emplace(key, Known{.series = AddSeries(reading.device, pid)}).first;
    }
    Known& process = found->second;
    process.seen_ns = reading.out.t_ns;
    if (memory == kNoMemory) {
      Tell(process, model::SeriesCondition::kNotSupported,
           "the driver does not tell memory per process", reading.out.t_ns);
      return;
    }
    Tell(process, model::SeriesCondition::kOk, "", reading.out.t_ns);
    reading.out.values.push_back({.series = process.series, .value = static_cast<double>(memory)});
  }

  model::SeriesId AddSeries(const Device& device, uint32_t pid) {
    const std::string text = std::to_string(pid);
    const model::EntityId entity = registry_.AddEntity(
        {.scope = Scope::kProcess,
         .name = device.uuid + "/" + text,
         .labels = {{"pid", text}, {"gpu", std::to_string(device.index)}, {"uuid", device.uuid}},
         .attributes = {}});
    return registry_.AddSeries(entity, kMetrics[kOfProcess], period_ns_);
  }

  void Tell(Known& process, model::SeriesCondition condition, const char* detail, int64_t t_ns) {
    if (process.condition == condition) return;
    process.condition = condition;
    sink_.Write(model::SeriesState{
        .t_ns = t_ns, .series = process.series, .condition = condition, .detail = detail});
  }

  // Processes of this device that the present list doesn't hold any more.
  void TellGone(const Device& device, int64_t t_ns) {
    for (auto& [key, process] : known_) {
      if (key.first != device.uuid || process.seen_ns == t_ns) continue;
      Tell(process, model::SeriesCondition::kSourceGone, "no longer listed on the device", t_ns);
    }
  }

  void CountNotKept(int64_t t_ns) {
    if (told_not_kept_) return;
    told_not_kept_ = true;
    sink_.Write(model::Loss{.t_ns = t_ns,
                            .severity = model::LossSeverity::kInfo,
                            .kind = "gpu.processes_not_kept",
                            .count = 1,
                            .detail = "further processes on the GPUs get no series of their own",
                            .help = "The device sums still hold them."});
  }

  Session& session_;
  model::Registry& registry_;
  model::Sink& sink_;
  int64_t period_ns_;
  SeriesGroup group_;
  std::map<std::pair<std::string, uint32_t>, Known> known_;
  bool told_not_kept_ = false;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_CHECK(context.nvml != nullptr) << "NVML sources need a session";
  EPM_TRY(context.nvml->Open(context));
  return std::unique_ptr<Source>(std::make_unique<ProcessSource>(context));
}

}  // namespace

const SourceDef kGpuProcesses{.name = "gpu.processes",
                              .summary = "processes that hold device memory",
                              .metrics = kMetrics,
                              .tier = Tier::kSlow,
                              .Make = &Make};

}  // namespace epochmeter::collect::nvml
