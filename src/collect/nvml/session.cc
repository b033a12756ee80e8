// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/session.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/strings.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr int64_t kLostRetryNs = 30 * base::kNsPerSecond;
constexpr int64_t kReinitMaxNs = 60 * base::kNsPerSecond;
constexpr int kUnknownLimit = 5;

using TextCall = NvmlReturn (*)(NvmlDevice, char*, uint32_t);

std::string ReadText(TextCall call, NvmlDevice handle) {
  std::array<char, kNvmlUuidBufferSize> text{};
  if (call == nullptr || call(handle, text.data(), text.size()) != kNvmlSuccess) return {};
  return text.data();
}

std::string ReadBusId(const Api& api, NvmlDevice handle) {
  NvmlPciInfo info{};
  if (api.pci_info == nullptr || api.pci_info(handle, &info) != kNvmlSuccess) return {};
  return info.bus_id;
}

void AddAttribute(model::Labels* labels, const char* key, const std::string& value) {
  if (!value.empty()) labels->emplace_back(key, value);
}

// Adds what the call writes to its last argument, times `scale`; nothing when it fails or is
// absent.
template <typename Function, typename... Args>
void AddNumber(model::Labels* labels, const char* key, uint64_t scale, Function call,
               Args... args) {
  uint32_t value = 0;
  if (call == nullptr || call(args..., &value) != kNvmlSuccess) return;
  labels->emplace_back(key, std::to_string(value * scale));
}

}  // namespace

std::string SysfsBusId(const std::string& nvml_bus_id) {
  const std::string lower = base::ToLowerAscii(nvml_bus_id);
  return base::StartsWith(lower, "0000") && lower.find(':') == 8 ? lower.substr(4) : lower;
}

base::Result<> Session::Open(const SourceContext& context) {
  registry_ = &context.registry;
  sink_ = &context.sink;
  if (!devices_.empty()) return {};
  const int64_t now_ns = context.env.monotonic_ns();
  if (now_ns < open_again_at_ns_) return open_error_;
  const auto attempt = [&]() -> base::Result<> {
    if (library_ == nullptr) {
      EPM_ASSIGN(library_, Library::Open(options_));
    }
    return Enumerate();
  };
  base::Result<> result = attempt();
  if (!result.ok()) {
    open_error_ = result.error();
    open_again_at_ns_ = context.env.monotonic_ns() + base::kNsPerSecond;
  }
  return result;
}

base::Result<> Session::Enumerate() {
  uint32_t count = 0;
  NvmlReturn rc = api().device_count(&count);
  uint64_t refused = 0;
  std::string refusal = rc == kNvmlSuccess ? "the driver lists none" : library_->ErrorText(rc);
  if (rc != kNvmlSuccess) count = 0;
  for (uint32_t index = 0; index < count; ++index) {
    NvmlDevice handle = nullptr;
    rc = api().handle_by_index(index, &handle);
    if (rc == kNvmlSuccess) {
      Identify(handle, index);
      continue;
    }
    ++refused;
    refusal = "GPU " + std::to_string(index) + ": " + library_->ErrorText(rc);
  }
  const char* advice =
      "check the device cgroup of the job or container and the kernel log (NVRM lines)";
  if (devices_.empty()) {
    return base::Error{.what = "NVML gives access to no GPU",
                       .where = library_->path(),
                       .why = refusal,
                       .what_to_do = advice,
                       .code = rc};
  }
  if (refused > 0) {
    sink_->Write(model::Loss{.t_ns = base::MonotonicNs(),
                             .severity = model::LossSeverity::kInfo,
                             .kind = "gpu.not_accessible",
                             .count = refused,
                             .detail = "GPUs present but not readable; last " + refusal,
                             .help = advice});
  }
  return {};
}

void Session::Identify(NvmlDevice handle, uint32_t index) {
  const std::string bus_id = ReadBusId(api(), handle);
  std::string uuid = ReadText(api().uuid, handle);
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
  ++device->generation;
  Describe(*device);
}

void Session::Describe(Device& device) {
  model::Labels about;
  const NvmlDevice handle = device.handle;
  AddAttribute(&about, "name", ReadText(api().name, handle));
  AddAttribute(&about, "pci_bus_id", SysfsBusId(device.bus_id));
  AddAttribute(&about, "serial", ReadText(api().serial, handle));
  AddAttribute(&about, "driver_version", library_->driver_version());
  AddAttribute(&about, "nvml_version", library_->nvml_version());
  AddAttribute(&about, "nvml_library", library_->path());
  constexpr uint64_t kHzPerMhz = 1000000;
  AddNumber(&about, "minor", 1, api().minor_number, handle);
  AddNumber(&about, "max_sm_clock_hz", kHzPerMhz, api().max_clock, handle, kNvmlClockSm);
  AddNumber(&about, "max_memory_clock_hz", kHzPerMhz, api().max_clock, handle, kNvmlClockMem);
  const auto threshold = api().temperature_threshold;
  AddNumber(&about, "temperature_slowdown_c", 1, threshold, handle, kNvmlThresholdSlowdown);
  AddNumber(&about, "temperature_shutdown_c", 1, threshold, handle, kNvmlThresholdShutdown);
  uint32_t mig = 0;
  uint32_t pending = 0;
  if (api().mig_mode != nullptr && api().mig_mode(handle, &mig, &pending) == kNvmlSuccess) {
    about.emplace_back("mig_mode", std::to_string(mig));
  }
  device.entity = registry_->AddEntity(
      {.scope = model::Scope::kGpu,
       .name = device.uuid,
       .labels = {{"gpu", std::to_string(device.index)}, {"uuid", device.uuid}},
       .attributes = std::move(about)});
}

void Session::Maintain(int64_t now_ns) {
  if (reinit_wanted_ && now_ns >= reinit_at_ns_) Reinitialise(now_ns);
  if (reinit_wanted_) return;
  for (Device& device : devices_) {
    if (!device.lost || now_ns < device.retry_at_ns) continue;
    if (Reacquire(device, now_ns)) {
      Tell("gpu.back", device, "answers again", now_ns);
    } else {
      device.retry_at_ns = now_ns + kLostRetryNs;
    }
  }
}

void Session::Note(Device& device, NvmlReturn rc, int64_t now_ns) {
  if (rc == kNvmlUninitialized) {
    if (!reinit_wanted_) reinit_at_ns_ = now_ns + reinit_wait_ns_;
    reinit_wanted_ = true;
    return;
  }
  if (rc != kNvmlUnknown && rc != kNvmlTimeout) {
    device.unknown_in_a_row = 0;
    if (rc == kNvmlGpuIsLost || rc == kNvmlResetRequired) {
      MarkLost(device, library_->ErrorText(rc), now_ns);
    }
    return;
  }
  if (++device.unknown_in_a_row < kUnknownLimit) return;
  MarkLost(device,
           library_->ErrorText(rc) + " from " + std::to_string(kUnknownLimit) +
               " calls in a row: the GPU hangs, or this container's access to it was revoked",
           now_ns);
}

void Session::MarkLost(Device& device, const std::string& detail, int64_t now_ns) {
  if (device.lost) return;
  device.lost = true;
  device.lost_detail = detail;
  device.retry_at_ns = now_ns + kLostRetryNs;
  Tell("gpu.lost", device, detail, now_ns);
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
  const std::string uuid = ReadText(api().uuid, handle);
  if (uuid != device.uuid && ReadBusId(api(), handle) != device.uuid) return false;
  device.handle = handle;
  device.lost = false;
  device.unknown_in_a_row = 0;
  ++device.generation;
  return true;
}

void Session::Reinitialise(int64_t now_ns) {
  const base::Result<> result = library_->Reinitialise();
  if (!result.ok()) {
    for (Device& device : devices_) MarkLost(device, result.error().Message(), now_ns);
    reinit_wait_ns_ = std::min(2 * reinit_wait_ns_, kReinitMaxNs);
    reinit_at_ns_ = now_ns + reinit_wait_ns_;
    return;
  }
  reinit_wanted_ = false;
  reinit_wait_ns_ = base::kNsPerSecond;
  for (Device& device : devices_) {
    const bool was_lost = device.lost;
    if (!Reacquire(device, now_ns)) {
      MarkLost(device, "not found after NVML was initialised again", now_ns);
    } else if (was_lost) {
      Tell("gpu.back", device, "answers again", now_ns);
    }
  }
}

void Session::Tell(const std::string& name, const Device& device, const std::string& detail,
                   int64_t now_ns) {
  sink_->Write(model::Event{
      .t_ns = now_ns,
      .kind = model::EventKind::kSource,
      .rank = std::nullopt,
      .epoch = std::nullopt,
      .step = std::nullopt,
      .name = name,
      .fields = {
          {"uuid", device.uuid}, {"gpu", static_cast<int64_t>(device.index)}, {"detail", detail}}});
}

}  // namespace epochmeter::collect::nvml
