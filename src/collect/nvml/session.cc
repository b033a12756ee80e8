// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/session.h"

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/strings.h"
#include "collect/nvml/asleep.h"
#include "model/source_event.h"

namespace epochmeter::collect::nvml {
namespace {

using model::SeriesCondition;

// Monotonic, as all times here: the caller's tick, not a clock read in between.
constexpr int64_t kLostRetryNs = 30 * base::kNsPerSecond;
constexpr int64_t kLostRetryMaxNs = 300 * base::kNsPerSecond;
constexpr int64_t kLookNs = 30 * base::kNsPerSecond;
constexpr int64_t kReinitMaxNs = 60 * base::kNsPerSecond;
// In a row: a single UNKNOWN or TIMEOUT may be a driver that is busy.
constexpr int kUnknownLimit = 5;
constexpr const char* kAccessAdvice =
    "check the device cgroup of the job or container and the kernel log (NVRM lines)";

void Set(model::Labels* labels, const std::string& key, const std::string& value) {
  for (auto& [known, old] : *labels) {
    if (known != key) continue;
    old = value;
    return;
  }
  labels->emplace_back(key, value);
}

std::string Get(const model::Labels& labels, std::string_view key) {
  for (const auto& [known, value] : labels) {
    if (known == key) return value;
  }
  return {};
}

}  // namespace

base::Result<> Session::Open(const SourceContext& context) {
  registry_ = &context.registry;
  sink_ = &context.sink;
  sys_root_ = context.env.sys_root;
  if (!devices_.empty()) return {};
  const int64_t now_ns = context.env.monotonic_ns();
  if (now_ns < open_again_at_ns_) return open_error_;
  base::Result<> result = OpenNow();
  if (!result.ok()) {
    open_error_ = result.error();
    open_again_at_ns_ = context.env.monotonic_ns() + base::kNsPerSecond;
  }
  return result;
}

base::Result<> Session::OpenNow() {
  if (library_ == nullptr) {
    if (AllGpusAsleep(sys_root_)) {
      return base::Error{.what = "the GPU sleeps",
                         .where = sys_root_ + "/bus/pci/devices",
                         .why = "its runtime_status is suspended, and asking it would wake it",
                         .what_to_do = "nothing: recording begins when the training wakes it",
                         .code = kNvmlNotReady};
    }
    EPM_ASSIGN(library_, Library::Open(options_));
    ++initialisation_;
    TellSymbols(base::MonotonicNs());
  }
  return Enumerate();
}

// Devices that give no handle are counted; only none at all is an error.
base::Result<> Session::Enumerate() {
  listed_ = 0;
  refused_ = 0;
  NvmlReturn rc = api().device_count(&listed_);
  std::string refusal = rc == kNvmlSuccess ? "the driver lists none" : library_->ErrorText(rc);
  if (rc != kNvmlSuccess) listed_ = 0;
  for (uint32_t index = 0; index < listed_; ++index) {
    NvmlDevice handle = nullptr;
    rc = api().handle_by_index(index, &handle);
    if (rc == kNvmlSuccess) {
      Identify(handle, index);
      continue;
    }
    ++refused_;
    refusal = "GPU " + std::to_string(index) + ": " + library_->ErrorText(rc);
  }
  if (devices_.empty()) {
    return base::Error{.what = "NVML gives access to no GPU",
                       .where = library_->path(),
                       .why = refusal,
                       .what_to_do = kAccessAdvice,
                       .code = rc};
  }
  if (refused_ > 0) TellRefused(refused_, refusal);
  return {};
}

void Session::TellRefused(uint64_t refused, const std::string& refusal) {
  sink_->Write(model::Loss{.t_ns = base::MonotonicNs(),
                           .severity = model::LossSeverity::kInfo,
                           .kind = "gpu.not_accessible",
                           .count = refused,
                           .detail = "GPUs present, not permitted or not readable; last " + refusal,
                           .help = kAccessAdvice});
}

void Session::TellSymbols(int64_t now_ns) {
  model::Event event = model::SourceEvent(now_ns, "nvml.symbols", {});
  for (const auto& [newest, found] : library_->symbols()) {
    event.fields.push_back({newest, found.empty() ? std::string("none") : found});
  }
  sink_->Write(event);
}

// A known UUID keeps its place, its series and its entity, and gets the new handle.
void Session::Identify(NvmlDevice handle, uint32_t index) {
  const std::string bus_id = ReadBusId(api(), handle);
  std::string uuid = ReadUuid(api(), handle);
  if (uuid.empty()) uuid = bus_id.empty() ? "gpu-index-" + std::to_string(index) : bus_id;
  auto device = std::find_if(devices_.begin(), devices_.end(),
                             [&](const Device& known) { return known.uuid == uuid; });
  if (device == devices_.end()) {
    device = devices_.emplace(devices_.end());
    device->uuid = uuid;
  }
  device->handle = handle;
  device->index = index;
  device->bus_id = bus_id;
  device->model = ReadName(api(), handle);
  ++device->generation;
  Describe(*device);
}

// The entity's labels are those of the first time; only the attributes follow.
void Session::Describe(Device& device) {
  Identity identity =
      ReadIdentity(*library_, device.handle, SysfsBusId(device.bus_id), options_.root);
  device.architecture = identity.architecture;
  device.mig = identity.mig;
  device.attributes = std::move(identity.attributes);
  device.entity = registry_->AddEntity(
      {.scope = model::Scope::kGpu,
       .name = device.uuid,
       .labels = {{"gpu", std::to_string(device.index)}, {"uuid", device.uuid}},
       .attributes = device.attributes});
}

void Session::SetAttribute(Device& device, const std::string& key, const std::string& value) {
  if (Get(device.attributes, key) == value) return;
  Set(&device.attributes, key, value);
  registry_->AddEntity({.scope = model::Scope::kGpu,
                        .name = device.uuid,
                        .labels = {},
                        .attributes = device.attributes});
}

void Session::Maintain(int64_t now_ns) {
  if (reinit_wanted_ && now_ns >= reinit_at_ns_) Reinitialise(now_ns);
  if (reinit_wanted_) return;
  for (Device& device : devices_) {
    if (!device.lost || now_ns < device.retry_at_ns) continue;
    if (!Reacquire(device, now_ns)) device.retry_at_ns = now_ns + kLostRetryNs;
  }
  LookForNew(now_ns);
}

// Asks for handles only when the count moved or some were refused: a handle initialises its GPU.
void Session::LookForNew(int64_t now_ns) {
  if (now_ns < look_at_ns_) return;
  const bool first = look_at_ns_ == 0;
  look_at_ns_ = now_ns + kLookNs;
  uint32_t count = 0;
  if (first || api().device_count(&count) != kNvmlSuccess) return;
  if (count == listed_ && refused_ == 0) return;
  listed_ = count;
  refused_ = 0;
  for (uint32_t index = 0; index < count; ++index) {
    NvmlDevice handle = nullptr;
    if (api().handle_by_index(index, &handle) != kNvmlSuccess) {
      ++refused_;
      continue;
    }
    const std::string uuid = ReadUuid(api(), handle);
    const bool known = std::any_of(devices_.begin(), devices_.end(),
                                   [&](const Device& device) { return device.uuid == uuid; });
    if (known || uuid.empty()) continue;
    Identify(handle, index);
    Tell("gpu.found", devices_.back(), "appeared during the run", now_ns);
  }
}

void Session::Note(Device& device, NvmlReturn rc, int64_t now_ns) {
  // A driver that was unloaded needs to be initialised anew when it is back.
  if (rc == kNvmlUninitialized || rc == kNvmlDriverNotLoaded) {
    if (!reinit_wanted_) reinit_at_ns_ = now_ns + reinit_wait_ns_;
    reinit_wanted_ = true;
    return;
  }
  if (rc == kNvmlUnknown || rc == kNvmlTimeout) {
    return TakeUnknown(device, library_->ErrorText(rc), now_ns);
  }
  device.unknown_in_a_row = 0;
  if (rc == kNvmlSuccess && device.on_probation) {
    device.on_probation = false;
    device.retry_wait_ns = 0;
    Tell("gpu.back", device, "answers again", now_ns);
  }
  if (rc == kNvmlGpuIsLost || rc == kNvmlResetRequired) {
    MarkLost(device, SeriesCondition::kDeviceLost, library_->ErrorText(rc), now_ns);
  }
  if (rc == kNvmlLibRmVersionMismatch && !told_replaced_) {
    told_replaced_ = true;
    Tell("driver.replaced", device,
         library_->ErrorText(rc) +
             ": the driver was upgraded under this run; what is loaded "
             "goes on, and the next run needs a reboot or a module reload",
         now_ns);
  }
}

void Session::TakeUnknown(Device& device, const std::string& text, int64_t now_ns) {
  if (device.on_probation) {
    return MarkLost(device, device.lost_condition, device.lost_detail, now_ns);
  }
  if (++device.unknown_in_a_row < kUnknownLimit) return;
  const std::string times = " from " + std::to_string(kUnknownLimit) + " calls in a row: ";
  const std::string node = options_.root + "/dev/nvidia" + Get(device.attributes, "minor");
  const int failure = options_.try_node(node);
  const bool revoked = failure == EPERM || failure == EACCES;
  MarkLost(device, revoked ? SeriesCondition::kNoPermission : SeriesCondition::kDeviceLost,
           text + times +
               (revoked ? "device access revoked: " + node + " can't be opened any more"
                        : "the GPU hangs, or access to it was taken away"),
           now_ns);
}

void Session::MarkLost(Device& device, SeriesCondition condition, const std::string& detail,
                       int64_t now_ns) {
  if (device.lost) return;
  device.lost = true;
  device.unknown_in_a_row = 0;
  if (std::exchange(device.on_probation, false)) {
    device.retry_wait_ns = std::min(2 * device.retry_wait_ns, kLostRetryMaxNs);
  } else {
    device.retry_wait_ns = kLostRetryNs;
    device.lost_condition = condition;
    device.lost_detail = detail;
    const bool revoked = condition == SeriesCondition::kNoPermission;
    Tell(revoked ? "gpu.access_revoked" : "gpu.lost", device, detail, now_ns);
  }
  device.retry_at_ns = now_ns + device.retry_wait_ns;
}

// The bus id finds the device in its slot even when the indices moved; its UUID proves that it is
// the same card.
bool Session::Reacquire(Device& device, int64_t now_ns) {
  NvmlDevice handle = nullptr;
  NvmlReturn rc = kNvmlFunctionNotFound;
  if (!device.bus_id.empty() && api().handle_by_bus_id != nullptr) {
    rc = api().handle_by_bus_id(device.bus_id.c_str(), &handle);
  } else if (api().handle_by_uuid != nullptr) {
    rc = api().handle_by_uuid(device.uuid.c_str(), &handle);
  }
  if (rc == kNvmlUninitialized) Note(device, rc, now_ns);
  if (rc != kNvmlSuccess) return false;
  const std::string uuid = ReadUuid(api(), handle);
  if (uuid != device.uuid && ReadBusId(api(), handle) != device.uuid) return false;
  device.handle = handle;
  device.on_probation = std::exchange(device.lost, false);
  device.unknown_in_a_row = 0;
  ++device.generation;
  return true;
}

void Session::Release(int64_t now_ns, int64_t pause_ns) {
  const std::string pause = base::FormatDuration(base::SecondsFromNs(pause_ns));
  for (Device& device : devices_) {
    if (device.lost) continue;  // has a reason of its own
    device.lost = true;
    device.on_probation = false;
    device.lost_condition = SeriesCondition::kSourceGone;
    device.lost_detail = "NVML was released on request";
  }
  FreeEventSet();
  if (library_ != nullptr) library_->Shutdown();
  if (devices_.empty()) {
    // No source is made yet: the next attempt begins from nothing.
    library_.reset();
    open_error_ = {.what = "NVML was released on request",
                   .where = "the GPU sampler",
                   .why = "SIGUSR1 asked for it",
                   .what_to_do = "nothing: it is tried again after " + pause};
    open_again_at_ns_ = now_ns + pause_ns;
  } else {
    released_ = reinit_wanted_ = true;
    reinit_at_ns_ = now_ns + pause_ns;
  }
  TellRelease("nvml.released", "on request, for " + pause, now_ns);
}

// Every handle is void afterwards: each device is looked for again by its bus id.
void Session::Reinitialise(int64_t now_ns) {
  event_set_ = nullptr;  // of the initialisation that is over
  const base::Result<> result = library_->Reinitialise();
  if (!result.ok()) {
    for (Device& device : devices_) {
      EndRelease(device);
      MarkLost(device, SeriesCondition::kDeviceLost, result.error().Message(), now_ns);
    }
    reinit_wait_ns_ = std::min(2 * reinit_wait_ns_, kReinitMaxNs);
    reinit_at_ns_ = now_ns + reinit_wait_ns_;
    return;
  }
  ++initialisation_;
  reinit_wanted_ = false;
  reinit_wait_ns_ = base::kNsPerSecond;
  for (Device& device : devices_) {
    const bool released = EndRelease(device);
    if (!Reacquire(device, now_ns)) {
      MarkLost(device, SeriesCondition::kDeviceLost, "not found after NVML was initialised again",
               now_ns);
    } else if (released) {
      device.on_probation = false;  // was never told to be lost
    }
  }
  if (std::exchange(released_, false)) TellRelease("nvml.taken_up", "initialised again", now_ns);
}

bool Session::EndRelease(Device& device) {
  const bool released = device.lost && device.lost_condition == SeriesCondition::kSourceGone;
  if (released) device.lost = false;
  return released;
}

NvmlEventSet Session::event_set() {
  const bool can = usable() && api().event_set_create != nullptr &&
                   api().register_events != nullptr && api().event_wait != nullptr;
  if (can && event_set_ == nullptr && api().event_set_create(&event_set_) != kNvmlSuccess) {
    event_set_ = nullptr;
  }
  return event_set_;
}

void Session::FreeEventSet() {
  const NvmlEventSet set = std::exchange(event_set_, nullptr);
  if (set != nullptr && usable() && api().event_set_free != nullptr) api().event_set_free(set);
}

void Session::TellRelease(const std::string& name, const std::string& detail, int64_t now_ns) {
  if (sink_ == nullptr) return;  // no source was ever made
  sink_->Write(model::SourceEvent(now_ns, name, {{"detail", detail}}));
}

void Session::Tell(const std::string& name, const Device& device, const std::string& detail,
                   int64_t now_ns) {
  sink_->Write(model::SourceEvent(
      now_ns, name,
      {{"uuid", device.uuid}, {"gpu", static_cast<int64_t>(device.index)}, {"detail", detail}}));
}

}  // namespace epochmeter::collect::nvml
