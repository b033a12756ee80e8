// SPDX-License-Identifier: Apache-2.0
// Busy shares of processes: 2.6 ms a device, so slow tier. The driver's list is full of traps:
// rows of zeros, percentages in the thousands, old rows again. Kept is a row whose stamp is newer
// than the last of its pid, whose values are at most 100 and whose process lives. A process without
// a row since the last call was idle. Pids are those of the driver's pid namespace.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_power_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kOfProcessSm, model::gpu::kOfProcessMemoryActivity};
constexpr std::array<CallDef, 1> kCalls = {{{"nvmlDeviceGetProcessUtilization", 0, 0}}};

constexpr uint32_t kRoom = 128;  // fewer than 72 entries are refused, whatever there is to say
constexpr uint32_t kMostRoom = 8192;
constexpr uint32_t kPidMax = 4194304;  // the kernel's PID_MAX_LIMIT
constexpr size_t kMostProcesses = 256;
constexpr uint64_t kSameStampUs = 1000;  // windows are 0.16 s long at least

struct Row {
  uint32_t pid;
  uint64_t stamp_us;
  uint32_t sm;
  uint32_t memory;
  uint32_t highest;  // of all its percentages
};

NvmlReturn ReadOlder(const Api& api, NvmlDevice handle, uint64_t since_us, std::vector<Row>* rows) {
  if (api.process_utilization == nullptr) return kNvmlFunctionNotFound;
  std::vector<NvmlProcessUtilizationSample> samples;
  for (uint32_t room = kRoom; room <= kMostRoom; room *= 4) {
    samples.assign(room, {});
    uint32_t count = room;
    const NvmlReturn rc = api.process_utilization(handle, samples.data(), &count, since_us);
    if (rc == kNvmlInsufficientSize) continue;
    if (rc != kNvmlSuccess) return rc;
    samples.resize(std::min(count, room));
    for (const NvmlProcessUtilizationSample& s : samples) {
      rows->push_back({.pid = s.pid,
                       .stamp_us = s.timestamp_us,
                       .sm = s.sm_util,
                       .memory = s.mem_util,
                       .highest = std::max({s.sm_util, s.mem_util, s.enc_util, s.dec_util})});
    }
    return rc;
  }
  return kNvmlInsufficientSize;
}

NvmlReturn ReadNewer(const Api& api, NvmlDevice handle, uint64_t since_us, std::vector<Row>* rows) {
  if (api.processes_utilization == nullptr) return kNvmlFunctionNotFound;
  std::vector<NvmlProcessUtilizationInfoV1> entries;
  for (uint32_t room = kRoom; room <= kMostRoom; room *= 4) {
    entries.assign(room, {});
    NvmlProcessesUtilizationInfoV1 request{.version = kNvmlProcessesUtilizationInfoV1Version,
                                           .count = room,
                                           .last_seen_us = since_us,
                                           .entries = entries.data()};
    const NvmlReturn rc = api.processes_utilization(handle, &request);
    if (rc == kNvmlInsufficientSize) continue;
    if (rc != kNvmlSuccess) return rc;
    entries.resize(std::min(request.count, room));
    for (const NvmlProcessUtilizationInfoV1& e : entries) {
      const uint32_t codecs = std::max({e.enc_util, e.dec_util, e.jpg_util, e.ofa_util});
      rows->push_back({.pid = e.pid,
                       .stamp_us = e.timestamp_us,
                       .sm = e.sm_util,
                       .memory = e.mem_util,
                       .highest = std::max({e.sm_util, e.mem_util, codecs})});
    }
    return rc;
  }
  return kNvmlInsufficientSize;
}

class ProcessUtilizationSource final : public Source {
 public:
  explicit ProcessUtilizationSource(const SourceContext& context)
      : session_(*context.nvml),
        registry_(context.registry),
        proc_root_(context.env.proc_root),
        period_ns_(TierPeriodNs(Tier::kSlow, context.tick_ns)),
        group_(context, {.metrics = {}, .calls = kCalls, .period_ns = period_ns_}) {}

  size_t parts() const override { return session_.devices().size(); }
  base::Result<> Sample(model::Samples& out) override { return SampleTurn(out, {}); }
  base::Result<> SampleTurn(model::Samples& out, const Turn& turn) override {
    session_.Maintain(out.t_ns);
    kept_.resize(session_.devices().size());
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (!turn.Has(i)) continue;
      SampleDevice({session_.api(), session_, group_, session_.devices()[i], out}, kept_[i]);
    }
    return {};
  }

 private:
  struct Process {
    std::array<model::SeriesId, 2> series{};
    uint64_t stamp_us = 0;
    int64_t put_ns = 0;
  };
  struct Kept {
    uint64_t newest_us = 0;
    uint64_t implausible = 0;
    bool refused = false;
    int64_t told_ns = 0;
    std::map<uint32_t, Process> processes;
  };

  void SampleDevice(const Reading& reading, Kept& kept) {
    const int64_t t_ns = reading.out.t_ns;
    if (!reading.group.Due(reading.device, 0, t_ns)) return;
    std::vector<Row> rows;
    const NvmlDevice handle = reading.device.handle;
    NvmlReturn rc = ReadNewer(reading.api, handle, kept.newest_us, &rows);
    if (rc == kNvmlFunctionNotFound || rc == kNvmlArgumentVersionMismatch) {
      rc = ReadOlder(reading.api, handle, kept.newest_us, &rows);
    }
    if (rc == kNvmlNotFound) rc = kNvmlSuccess;  // idle, not broken
    if (!reading.group.Took(reading.device, 0, rc, t_ns)) return TellRefused(reading, kept, rc);
    std::sort(rows.begin(), rows.end(),
              [](const Row& a, const Row& b) { return a.stamp_us < b.stamp_us; });
    for (const Row& row : rows) TakeRow(reading, kept, row);
    PutIdle(reading, kept);
    TellImplausible(reading, kept);
  }

  // There is no series yet that could have the reason.
  static void TellRefused(const Reading& reading, Kept& kept, NvmlReturn rc) {
    if (std::exchange(kept.refused, true) || reading.device.lost) return;
    reading.session.TellLoss(
        {.t_ns = reading.out.t_ns,
         .severity = model::LossSeverity::kInfo,
         .kind = "gpu.process_utilization_unavailable",
         .count = 1,
         .detail = "the driver does not tell which process uses " + reading.device.uuid + ": " +
                   reading.session.library().ErrorText(rc),
         .help = "It is not told under MIG, in WSL and in most virtual GPUs."});
  }

  bool Lives(uint32_t pid) const {
    struct stat about {};
    return ::stat((proc_root_ + "/" + std::to_string(pid)).c_str(), &about) == 0;
  }

  void TakeRow(const Reading& reading, Kept& kept, const Row& row) {
    if (row.pid == 0 && row.stamp_us == 0 && row.highest == 0) return;  // padding
    if (row.pid == 0 || row.pid > kPidMax || row.highest > 100) {
      ++kept.implausible;
      return;
    }
    kept.newest_us = std::max(kept.newest_us, row.stamp_us);
    auto found = kept.processes.find(row.pid);
    if (found != kept.processes.end() && row.stamp_us <= found->second.stamp_us + kSameStampUs) {
      return;
    }
    if (!Lives(row.pid)) return;  // ended, or its number means nothing in this container
    if (found == kept.processes.end()) {
      if (kept.processes.size() >= kMostProcesses) return;
      found = kept.processes.emplace(row.pid, Process{.series = AddSeries(reading, row.pid)}).first;
    }
    found->second.stamp_us = row.stamp_us;
    Put(found->second, row.sm / 100.0, row.memory / 100.0, reading.out);
  }

  static void Put(Process& process, double sm, double memory, model::Samples& out) {
    // A later row of the same call replaces the earlier one.
    if (process.put_ns == out.t_ns) {
      std::erase_if(out.values, [&](const model::SampleValue& value) {
        return value.series == process.series[0] || value.series == process.series[1];
      });
    }
    process.put_ns = out.t_ns;
    out.values.push_back({.series = process.series[0], .value = sm});
    out.values.push_back({.series = process.series[1], .value = memory});
  }

  void PutIdle(const Reading& reading, Kept& kept) {
    std::erase_if(kept.processes, [this](const auto& entry) { return !Lives(entry.first); });
    for (auto& [pid, process] : kept.processes) {
      if (process.put_ns != reading.out.t_ns) Put(process, 0, 0, reading.out);
    }
  }

  std::array<model::SeriesId, 2> AddSeries(const Reading& reading, uint32_t pid) {
    const Device& device = reading.device;
    const std::string text = std::to_string(pid);
    const model::EntityId entity = registry_.AddEntity(
        {.scope = model::Scope::kProcess,
         .name = device.uuid + "/" + text,
         .labels = {{"pid", text}, {"gpu", std::to_string(device.index)}, {"uuid", device.uuid}},
         .attributes = {}});
    return {registry_.AddSeries(entity, kMetrics[0], period_ns_),
            registry_.AddSeries(entity, kMetrics[1], period_ns_)};
  }

  static void TellImplausible(const Reading& reading, Kept& kept) {
    constexpr int64_t kTellAgainNs = 600 * base::kNsPerSecond;
    const int64_t t_ns = reading.out.t_ns;
    if (kept.implausible == 0 || (kept.told_ns != 0 && t_ns - kept.told_ns < kTellAgainNs)) return;
    reading.session.TellLoss(
        {.t_ns = t_ns,
         .severity = model::LossSeverity::kInfo,
         .kind = "value.out_of_range",
         .count = std::exchange(kept.implausible, 0),
         .detail = "rows of gpu.process.utilization on " + reading.device.uuid +
                   " with impossible pids or percentages",
         .help = "The driver gave rows it had not filled; a newer driver may not."});
    kept.told_ns = t_ns;
  }

  Session& session_;
  model::Registry& registry_;
  std::string proc_root_;
  int64_t period_ns_;
  SeriesGroup group_;
  std::vector<Kept> kept_;  // by the device's place in the session
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_TRY(OpenSession(context));
  return std::unique_ptr<Source>(std::make_unique<ProcessUtilizationSource>(context));
}

}  // namespace

const SourceDef kGpuProcessUtilization{.name = "gpu.process_utilization",
                                       .summary = "busy shares of processes on the GPUs",
                                       .metrics = kMetrics,
                                       .tier = Tier::kSlow,
                                       .at_epochs = false,
                                       .longest_ns = 120 * base::kNsPerSecond,
                                       .Make = &Make};

}  // namespace epochmeter::collect::nvml
