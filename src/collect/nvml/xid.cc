// SPDX-License-Identifier: Apache-2.0
// XID errors and other events of the driver, asked without waiting in each tick: NVML has one
// thread. Where the driver has no events, and for what came before, the kernel log is read.
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collect/nvml/device_source.h"
#include "collect/nvml/kernel_log.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_health_metrics.h"
#include "model/source_event.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kXids};
constexpr std::array<CallDef, 1> kCalls = {{{"nvmlDeviceRegisterEvents", 0, 1}}};

struct EventType {
  uint64_t bit;
  const char* name;
};
constexpr std::array<EventType, 8> kTypes = {{
    {kNvmlEventXid, "gpu.xid"},
    {kNvmlEventDoubleBitEcc, "gpu.ecc_uncorrected"},
    {kNvmlEventEccStorm, "gpu.ecc_storm"},
    {kNvmlEventDramRetirement, "gpu.dram_retired"},
    {kNvmlEventDramRetirementFailure, "gpu.dram_retirement_failed"},
    {kNvmlEventFatalPoison, "gpu.fatal_poison"},
    {kNvmlEventGpuUnavailable, "gpu.unavailable"},
    {kNvmlEventRecoveryAction, "gpu.recovery_action"},
}};
constexpr int kMostEvents = 64;  // a tick; what is left comes with the next

class XidSource final : public Source {
 public:
  explicit XidSource(const SourceContext& context)
      : session_(*context.nvml),
        registry_(context.registry),
        sink_(context.sink),
        period_ns_(TierPeriodNs(Tier::kTick, context.tick_ns)),
        began_ns_(context.env.monotonic_ns()),
        group_(context, {.metrics = kMetrics, .calls = kCalls, .period_ns = period_ns_}),
        log_(context.nvml->root() + "/dev/kmsg") {}

  base::Result<> Sample(model::Samples& out) override {
    session_.Maintain(out.t_ns);
    kept_.resize(session_.devices().size());
    if (session_.usable()) {
      Register(out);
      Drain(out);
    }
    ReadLog(out);
    for (size_t i = 0; i < kept_.size(); ++i) PutCounts(i, out);
    return {};
  }

 private:
  struct Counter {
    model::SeriesId series = 0;
    double count = 0;
  };
  struct Kept {
    uint32_t generation = 0;  // of the handle that is registered, or was refused
    bool registered = false;
    bool logged = false;  // the kernel log gave an XID: a source even without events
    double total = 0;
    std::map<uint32_t, Counter> by_xid;
  };

  void Register(model::Samples& out) {
    if (initialisation_ != session_.initialisation()) {
      initialisation_ = session_.initialisation();  // registrations of an older one are void
      for (Kept& kept : kept_) kept.generation = 0;
    }
    for (size_t i = 0; i < kept_.size(); ++i) {
      Device& device = session_.devices()[i];
      if (device.lost || device.excluded || kept_[i].generation == device.generation) continue;
      if (!group_.Due(device, 0, out.t_ns)) continue;
      RegisterDevice(device, kept_[i], out.t_ns);
    }
  }

  void RegisterDevice(Device& device, Kept& kept, int64_t t_ns) {
    const Api& api = session_.api();
    uint64_t wanted = 0;
    for (const EventType& type : kTypes) wanted |= type.bit;
    uint64_t supported = kNvmlEventXid;
    if (api.supported_events != nullptr) {
      supported = 0;
      if (api.supported_events(device.handle, &supported) != kNvmlSuccess) supported = 0;
    }
    kept.registered = false;
    NvmlReturn rc = kNvmlNotSupported;
    const NvmlEventSet set = session_.event_set();
    if (set != nullptr && (supported & wanted) != 0) {
      rc = api.register_events(device.handle, supported & wanted, set);
    }
    if (rc == kNvmlSuccess) {
      kept.generation = device.generation;
      kept.registered = true;
    } else if (rc == kNvmlNotSupported) {
      kept.generation = device.generation;
      group_.Unsupported(device, 0,
                         "the driver gives no events here: no event source, which says nothing "
                         "of the GPU's health; XIDs come from the kernel log where it is readable",
                         t_ns);
    } else {
      group_.Took(device, 0, rc, t_ns);
    }
  }

  void Drain(model::Samples& out) {
    const NvmlEventSet set = session_.event_set();
    if (set == nullptr) return;
    for (int i = 0; i < kMostEvents; ++i) {
      NvmlEventData data{};
      data.gpu_instance_id = data.compute_instance_id = kNvmlNoInstance;
      // TIMEOUT is the usual answer: nothing happened.
      if (session_.api().event_wait(set, &data, 0) != kNvmlSuccess) return;
      Take(data, out.t_ns);
    }
  }

  // Events name devices by handle; one of an older generation still is the same card.
  size_t PlaceOf(NvmlDevice handle) const {
    const auto& devices = session_.devices();
    for (size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].handle == handle) return i;
    }
    const std::string uuid = ReadUuid(session_.api(), handle);
    for (size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].uuid == uuid) return i;
    }
    return devices.size();
  }

  void Take(const NvmlEventData& data, int64_t t_ns) {
    const size_t place = PlaceOf(data.device);
    if (place >= kept_.size()) return;
    std::vector<model::EventField> fields = About(place, "nvml");
    if (data.gpu_instance_id != kNvmlNoInstance) {
      fields.push_back({"gpu_instance_id", static_cast<int64_t>(data.gpu_instance_id)});
    }
    for (const EventType& type : kTypes) {
      if ((data.type & type.bit) == 0) continue;
      if (type.bit == kNvmlEventXid) return TakeXid(place, data.data, t_ns, fields);
      Tell(type.name, t_ns, fields);
    }
  }

  void TakeXid(size_t place, uint64_t xid, int64_t t_ns, std::vector<model::EventField> fields) {
    fields.push_back({"xid", static_cast<int64_t>(xid)});
    Tell("gpu.xid", t_ns, std::move(fields));
    Kept& kept = kept_[place];
    kept.total += 1;
    const auto number = static_cast<uint32_t>(xid);
    const auto [found, is_new] = kept.by_xid.emplace(number, Counter{});
    if (is_new) found->second.series = AddCounter(place, number);
    found->second.count += 1;
  }

  // A series of its own for each XID, that was 0 from the beginning.
  model::SeriesId AddCounter(size_t place, uint32_t xid) {
    model::MetricInfo info = model::InfoOf(kMetrics[0]);
    const std::string number = std::to_string(xid);
    info.name = "gpu.xid";
    info.label = "xid=" + number;
    info.field = "xid_" + number;
    info.prometheus = "gpu_xid_errors_total";
    const model::SeriesId series =
        registry_.AddSeries(session_.devices()[place].entity, info, period_ns_);
    sink_.Write(model::Samples{.t_ns = began_ns_, .values = {{.series = series, .value = 0}}});
    return series;
  }

  void ReadLog(const model::Samples& out) {
    std::map<size_t, std::pair<int64_t, KernelXid>> before;  // count and last, by place
    for (const KernelXid& line : log_.Read()) {
      const size_t place = PlaceOf(line.bus_id);
      if (place >= kept_.size() || session_.devices()[place].excluded) continue;
      if (line.t_ns < began_ns_) {
        ++before[place].first;
        before[place].second = line;
      } else if (!kept_[place].registered) {
        kept_[place].logged = true;
        std::vector<model::EventField> fields = About(place, "kernel_log");
        fields.push_back({"detail", line.text});
        TakeXid(place, line.xid, line.t_ns, std::move(fields));
      }
    }
    for (const auto& [place, found] : before) {
      std::vector<model::EventField> fields = About(place, "kernel_log");
      fields.push_back({"count", found.first});
      fields.push_back({"last_xid", static_cast<int64_t>(found.second.xid)});
      fields.push_back({"last_age_s", base::SecondsFromNs(began_ns_ - found.second.t_ns)});
      fields.push_back({"detail", found.second.text});
      Tell("gpu.xid_before", out.t_ns, std::move(fields));
    }
  }

  size_t PlaceOf(const std::string& bus_id) const {
    const auto& devices = session_.devices();
    for (size_t i = 0; i < devices.size(); ++i) {
      const std::string known = SysfsBusId(devices[i].bus_id);
      if (!bus_id.empty() && known.compare(0, bus_id.size(), bus_id) == 0) return i;
    }
    return devices.size();
  }

  void PutCounts(size_t place, model::Samples& out) {
    const Device& device = session_.devices()[place];
    Kept& kept = kept_[place];
    if (device.excluded) return;
    if (!session_.usable() && !kept.logged) {
      if (kept.registered) group_.TellLost(device, out.t_ns);  // an event now would be missed
      return;
    }
    if (kept.registered || kept.logged) group_.Put(device, 0, kept.total, out);
    for (const auto& [xid, counter] : kept.by_xid) {
      out.values.push_back({.series = counter.series, .value = counter.count});
    }
  }

  std::vector<model::EventField> About(size_t place, const char* source) const {
    const Device& device = session_.devices()[place];
    return {{"uuid", device.uuid},
            {"gpu", static_cast<int64_t>(device.index)},
            {"source", std::string(source)}};
  }

  void Tell(const char* name, int64_t t_ns, std::vector<model::EventField> fields) {
    sink_.Write(model::SourceEvent(t_ns, name, std::move(fields)));
  }

  Session& session_;
  model::Registry& registry_;
  model::Sink& sink_;
  int64_t period_ns_;
  int64_t began_ns_;
  SeriesGroup group_;
  KernelLog log_;
  uint32_t initialisation_ = 0;
  std::vector<Kept> kept_;  // by the device's place in the session
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_TRY(OpenSession(context));
  return std::unique_ptr<Source>(std::make_unique<XidSource>(context));
}

}  // namespace

const SourceDef kGpuXid{.name = "gpu.xid",
                        .summary = "XID errors and other events of the driver",
                        .metrics = kMetrics,
                        .tier = Tier::kTick,
                        .vital = true,
                        .Make = &Make};

}  // namespace epochmeter::collect::nvml
