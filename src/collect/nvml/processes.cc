// SPDX-License-Identifier: Apache-2.0
// Which processes hold device memory, and what part of it is the job's own: about 9 us for a list
// on a data centre GPU, milliseconds on others, so slow tier. What can't be known is absent, never
// 0, and never another's: see gpu_owner.h for whose a pid is.
//
// The ledger of one device at one instant: used = own + others + unexplained. Unexplained is what
// no listed process holds: processes that are hidden, have ended without freeing it, or the
// driver. Devices of other jobs are not recorded, but their lists are looked at: a process of ours
// on one of them makes it the job's.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "collect/nvml/device_source.h"
#include "collect/nvml/gpu_owner.h"
#include "collect/nvml/nvml_sources.h"
#include "collect/nvml/process_list.h"
#include "model/gpu_metrics.h"
#include "model/source_event.h"

namespace epochmeter::collect::nvml {
namespace {

using model::MetricDef;
using model::Scope;

enum MetricIndex : size_t { kSum, kCount, kOwn, kOthers, kUnexplained, kOfProcess };

constexpr std::array kMetrics = {model::gpu::kProcessMemory,     model::gpu::kProcessCount,
                                 model::gpu::kOwnMemory,         model::gpu::kOthersMemory,
                                 model::gpu::kUnexplainedMemory, model::gpu::kOfProcessMemory};
constexpr std::span<const MetricDef> kGpuMetrics(kMetrics.data(), kOfProcess);

// The list, and what else each figure needs.
enum CallIndex : size_t { kList, kSumCall, kCountCall, kOwnCall, kOthersCall, kUnexplainedCall };
constexpr std::array<CallDef, 6> kCalls = {{
    {"nvmlDeviceGetComputeRunningProcesses", kSum, kOfProcess},
    {"memory per process", kSum, 1},
    {"nvmlDeviceGetComputeRunningProcesses", kCount, 1},
    {"owners of processes", kOwn, 1},
    {"owners of processes", kOthers, 1},
    {"memory per process and device", kUnexplained, 1},
}};

constexpr uint64_t kNotTold = ListedProcess::kNotTold;
constexpr size_t kMostProcesses = 256;       // entities a run may get from one source
constexpr uint64_t kNoticeable = 64U << 20;  // memory in use that an empty list can't go with
constexpr const char* kMemoryNotTold =
    "the driver does not tell memory per process (WSL, WDDM, MIG parent, some containers)";
constexpr const char* kHidden =
    "the driver lists no process although memory is in use: they are hidden from this container, "
    "or ended without freeing it";
constexpr const char* kOutside =
    "the driver lists the processes of this container only: memory of those outside is unexplained";
constexpr const char* kMpsServer = "nvidia-cuda-mps";  // as comm cuts it

// Sums of one list; nothing where an entry keeps its part to itself.
struct Sums {
  std::optional<uint64_t> all = 0, compute = 0, own = 0, others = 0;
  size_t own_count = 0;
  bool mps_server = false;
};

void Add(uint64_t memory, std::optional<uint64_t>* sum) {
  if (memory == kNotTold) sum->reset();
  if (*sum) **sum += memory;
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
        owner_(context),
        group_(context, {.metrics = kGpuMetrics, .calls = kCalls, .period_ns = period_ns_}) {}

  base::Result<> Sample(model::Samples& out) override {
    session_.Maintain(out.t_ns);
    std::vector<DeviceList> lists;
    std::vector<uint32_t> listed;
    for (Device& device : session_.devices()) {
      auto list = ReadDeviceList({session_.api(), session_, group_, device, out});
      if (!list) {
        if (device.lost) TellGone(device, device.lost_detail, out.t_ns);
        continue;
      }
      for (const ListedProcess& process : list->processes) listed.push_back(process.pid);
      lists.push_back(std::move(*list));
    }
    owner_.Refresh(listed);
    for (const DeviceList& list : lists) {
      const Reading reading{session_.api(), session_, group_, *list.device, out};
      if (TakeIfUsed(list) || list.device->excluded) continue;
      PutList(reading, list);
      TellGone(*list.device, "no longer listed on the device", out.t_ns);
    }
    return {};
  }

 private:
  struct DeviceList {
    Device* device = nullptr;
    NvmlMemoryV2 memory;
    std::vector<ListedProcess> processes;
  };
  struct Known {
    model::SeriesId series = 0;
    Owner owner = Owner::kUnknown;
    int64_t seen_ns = 0;
    model::SeriesCondition condition = model::SeriesCondition::kOk;
  };

  // Nothing when the device can't be read now; the reason is told, but not of other jobs' devices.
  std::optional<DeviceList> ReadDeviceList(const Reading& reading) {
    Device& device = reading.device;
    const int64_t t_ns = reading.out.t_ns;
    if (device.excluded ? device.lost : !group_.Due(device, kList, t_ns)) return {};
    DeviceList out{
        .device = &device, .memory = ReadMemory(reading.api, device.handle), .processes = {}};
    ProcessList list = ReadProcessList(reading.api, device.handle, out.memory.total);
    out.processes = std::move(list.processes);
    if (device.excluded) return out;
    if (!group_.Took(device, kList, list.code, t_ns)) return {};
    if (list.plausible) return out;
    group_.Drop(device, kSum, "process list with impossible entries", t_ns);
    return {};
  }

  // A device with a process of ours is ours from now on; its next reading is recorded.
  bool TakeIfUsed(const DeviceList& list) {
    if (list.device->used_by_job) return false;
    for (const ListedProcess& process : list.processes) {
      if (owner_.Of(process.pid) != Owner::kJob) continue;
      list.device->used_by_job = true;
      return list.device->excluded;
    }
    return false;
  }

  Sums SumUp(const DeviceList& list) const {
    Sums sums;
    for (const ListedProcess& process : list.processes) {
      const bool own = owner_.Of(process.pid) == Owner::kJob;
      Add(process.memory_bytes, &sums.all);
      if (process.compute) Add(process.memory_bytes, &sums.compute);
      Add(process.memory_bytes, own ? &sums.own : &sums.others);
      sums.own_count += own ? 1 : 0;
      if (!own && owner_.NameOf(process.pid) == kMpsServer) sums.mps_server = true;
    }
    return sums;
  }

  void PutList(const Reading& reading, const DeviceList& list) {
    const int64_t t_ns = reading.out.t_ns;
    const Sums sums = SumUp(list);
    const bool hidden = list.processes.empty() && list.memory.used > kNoticeable;
    if (hidden) {
      group_.Absent(reading.device, kSumCall, kHidden, t_ns);
      group_.Absent(reading.device, kCountCall, kHidden, t_ns);
    } else {
      const auto compute = std::count_if(list.processes.begin(), list.processes.end(),
                                         [](const ListedProcess& p) { return p.compute; });
      group_.Put(reading.device, kCount, static_cast<double>(compute), reading.out);
      PutOrSay(reading, kSum, kSumCall, sums.compute, kMemoryNotTold);
    }
    PutOwners(reading, sums, hidden);
    PutUnexplained(reading, list, sums);
    for (const ListedProcess& process : list.processes) PutProcess(reading, process);
  }

  void PutOrSay(const Reading& reading, size_t metric, size_t call,
                const std::optional<uint64_t>& value, const std::string& reason) {
    if (value) {
      group_.Put(reading.device, metric, static_cast<double>(*value), reading.out);
    } else {
      group_.Absent(reading.device, call, reason, reading.out.t_ns);
    }
  }

  void PutOwners(const Reading& reading, const Sums& sums, bool hidden) {
    std::string why = owner_.why_unknown();
    if (why.empty() && hidden) why = kHidden;
    if (why.empty() && sums.mps_server && sums.own_count == 0) {
      why = "the MPS server of this GPU holds the memory of its clients";
    }
    const bool known = why.empty();
    PutOrSay(reading, kOwn, kOwnCall, known ? sums.own : std::nullopt,
             known ? kMemoryNotTold : why);
    const bool all = known && owner_.sees_all();
    PutOrSay(reading, kOthers, kOthersCall, all ? sums.others : std::nullopt,
             !known ? why
             : all  ? kMemoryNotTold
                    : kOutside);
    if (sums.mps_server) TellMps(reading);
  }

  // An empty list is believed only where the driver's pids are known to be visible.
  void PutUnexplained(const Reading& reading, const DeviceList& list, const Sums& sums) {
    std::string why;
    if (list.memory.total == 0) {
      why = "needs nvmlDeviceGetMemoryInfo_v2, which keeps the driver's reserve apart";
    } else if (list.processes.empty() && list.memory.used > kNoticeable &&
               !owner_.why_unknown().empty()) {
      why = kHidden;
    } else if (!sums.all) {
      why = kMemoryNotTold;
    }
    std::optional<uint64_t> rest;
    // Memory that two processes share is booked on both.
    if (why.empty()) rest = list.memory.used - std::min(list.memory.used, *sums.all);
    PutOrSay(reading, kUnexplained, kUnexplainedCall, rest, why);
  }

  void PutProcess(const Reading& reading, const ListedProcess& listed) {
    const auto key = std::make_pair(reading.device.uuid, listed.pid);
    auto found = known_.find(key);
    if (found == known_.end()) {
      if (known_.size() >= kMostProcesses) return CountNotKept(reading.out.t_ns);
      found = known_.emplace(key, Known{}).first;
      found->second.owner = owner_.Of(listed.pid);
      found->second.series = registry_.AddSeries(AddEntity(reading.device, listed.pid),
                                                 kMetrics[kOfProcess], period_ns_);
    }
    Known& process = found->second;
    process.seen_ns = reading.out.t_ns;
    if (const Owner owner = owner_.Of(listed.pid); owner != process.owner) {
      process.owner = owner;
      AddEntity(reading.device, listed.pid);
    }
    if (listed.memory_bytes == kNotTold) {
      Tell(process, model::SeriesCondition::kNotSupported, kMemoryNotTold, reading.out.t_ns);
      return;
    }
    Tell(process, model::SeriesCondition::kOk, "", reading.out.t_ns);
    reading.out.values.push_back(
        {.series = process.series, .value = static_cast<double>(listed.memory_bytes)});
  }

  // The name is told of the job's own processes only; others are none of our business.
  model::EntityId AddEntity(const Device& device, uint32_t pid) {
    const std::string text = std::to_string(pid);
    const Owner owner = owner_.Of(pid);
    model::Labels about = {{"owner", owner == Owner::kJob     ? "job"
                                     : owner == Owner::kOther ? "other"
                                                              : "unknown"}};
    if (owner == Owner::kJob) about.emplace_back("name", owner_.NameOf(pid));
    return registry_.AddEntity(
        {.scope = Scope::kProcess,
         .name = device.uuid + "/" + text,
         .labels = {{"pid", text}, {"gpu", std::to_string(device.index)}, {"uuid", device.uuid}},
         .attributes = std::move(about)});
  }

  void TellMps(const Reading& reading) {
    if (!told_mps_.insert(reading.device.uuid).second) return;
    sink_.Write(model::SourceEvent(
        reading.out.t_ns, "gpu.mps",
        {{.key = "uuid", .value = reading.device.uuid},
         {.key = "gpu", .value = static_cast<int64_t>(reading.device.index)},
         {.key = "detail",
          .value = std::string("an MPS server runs here: utilisation is that of all its "
                               "clients together")}}));
  }

  void Tell(Known& process, model::SeriesCondition condition, const std::string& detail,
            int64_t t_ns) {
    if (process.condition == condition) return;
    process.condition = condition;
    sink_.Write(model::SeriesState{
        .t_ns = t_ns, .series = process.series, .condition = condition, .detail = detail});
  }

  // Processes of this device that the present list doesn't hold any more.
  void TellGone(const Device& device, const std::string& why, int64_t t_ns) {
    for (auto& [key, process] : known_) {
      if (key.first != device.uuid || process.seen_ns == t_ns) continue;
      Tell(process, model::SeriesCondition::kSourceGone, why, t_ns);
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
  GpuOwner owner_;
  SeriesGroup group_;
  std::map<std::pair<std::string, uint32_t>, Known> known_;
  std::set<std::string> told_mps_;
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
