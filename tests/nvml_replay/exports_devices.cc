// SPDX-License-Identifier: Apache-2.0
// Exported calls: how many GPUs there are, and their handles.
#include <strings.h>

#include <algorithm>

#include "call.h"

namespace nvml_replay {
namespace {

NvmlReturn Count(std::string_view function, uint32_t* count) {
  const Call call(function);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr) return kNvmlInvalidArgument;
  *count = static_cast<uint32_t>(call.player().Enumerated().size());
  return kNvmlSuccess;
}

NvmlReturn GiveHandle(std::string_view function, Unit unit, NvmlDevice* out) {
  const Call call(function, unit);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  if (!call.player().model({unit.device}).permitted) return kNvmlNoPermission;
  *out = call.player().HandleOf(unit);
  return kNvmlSuccess;
}

// The call without a device, for what has to be told before one is found.
NvmlReturn Refused(std::string_view function, NvmlReturn reason) {
  const Call call(function);
  return call.rc() != kNvmlSuccess ? call.rc() : reason;
}

NvmlReturn HandleByIndex(std::string_view function, uint32_t index, NvmlDevice* out) {
  Player& player = Player::Get();
  const std::lock_guard<std::recursive_mutex> lock(player.mutex());
  if (!player.initialised()) return kNvmlUninitialized;
  const std::vector<size_t> devices = player.Enumerated();
  if (index >= devices.size()) return Refused(function, kNvmlInvalidArgument);
  return GiveHandle(function, {devices[index]}, out);
}

template <typename Matches>
NvmlReturn HandleWhere(std::string_view function, NvmlDevice* out, Matches matches) {
  Player& player = Player::Get();
  const std::lock_guard<std::recursive_mutex> lock(player.mutex());
  if (!player.initialised()) return kNvmlUninitialized;
  for (const size_t device : player.Enumerated()) {
    const DeviceModel& model = player.model({device});
    if (matches(model)) return GiveHandle(function, {device}, out);
    for (size_t i = 0; player.MigEnabled(device) && i < model.instances.size(); ++i) {
      const DeviceModel& instance = model.instances[i];
      const bool exists = !instance.hole && instance.compute_instance >= 0;
      if (!exists || !matches(instance)) continue;
      return GiveHandle(function, {device, static_cast<int>(i)}, out);
    }
  }
  return Refused(function, kNvmlNotFound);
}

// "00000000:1A:00.0" and CUDA's "0000:1a:00.0" name the same device.
bool SameBusId(const std::string& ours, const char* given) {
  if (ours.empty()) return false;
  return strcasecmp(ours.c_str(), given) == 0 || strcasecmp(ours.c_str() + 4, given) == 0;
}

NvmlReturn HandleByBusId(std::string_view function, const char* id, NvmlDevice* out) {
  if (id == nullptr) return Refused(function, kNvmlInvalidArgument);
  return HandleWhere(function, out,
                     [&](const DeviceModel& model) { return SameBusId(model.bus_id, id); });
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::DeviceModel;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetCount_v2(uint32_t* count) {
  return nvml_replay::Count("nvmlDeviceGetCount_v2", count);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetCount(uint32_t* count) {
  return nvml_replay::Count("nvmlDeviceGetCount", count);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleByIndex_v2(uint32_t index, NvmlDevice* device) {
  return nvml_replay::HandleByIndex("nvmlDeviceGetHandleByIndex_v2", index, device);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleByIndex(uint32_t index, NvmlDevice* device) {
  return nvml_replay::HandleByIndex("nvmlDeviceGetHandleByIndex", index, device);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleByUUID(const char* uuid, NvmlDevice* device) {
  constexpr const char* kName = "nvmlDeviceGetHandleByUUID";
  if (uuid == nullptr) return nvml_replay::Refused(kName, kNvmlInvalidArgument);
  return nvml_replay::HandleWhere(kName, device,
                                  [&](const DeviceModel& model) { return model.uuid == uuid; });
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleBySerial(const char* serial, NvmlDevice* device) {
  constexpr const char* kName = "nvmlDeviceGetHandleBySerial";
  if (serial == nullptr) return nvml_replay::Refused(kName, kNvmlInvalidArgument);
  return nvml_replay::HandleWhere(kName, device,
                                  [&](const DeviceModel& model) { return model.serial == serial; });
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleByPciBusId_v2(const char* id, NvmlDevice* device) {
  return nvml_replay::HandleByBusId("nvmlDeviceGetHandleByPciBusId_v2", id, device);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleByPciBusId(const char* id, NvmlDevice* device) {
  return nvml_replay::HandleByBusId("nvmlDeviceGetHandleByPciBusId", id, device);
}

// The place in the enumeration, which changes when devices come and go; for a MIG handle its slot.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetIndex(NvmlDevice device, uint32_t* index) {
  const Call call("nvmlDeviceGetIndex", device, nvml_replay::Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (index == nullptr) return kNvmlInvalidArgument;
  if (call.unit().instance >= 0) {
    *index = static_cast<uint32_t>(call.unit().instance);
    return kNvmlSuccess;
  }
  const auto devices = call.player().Enumerated();
  const auto at = std::find(devices.begin(), devices.end(), call.unit().device);
  if (at == devices.end()) return kNvmlGpuIsLost;
  *index = static_cast<uint32_t>(at - devices.begin());
  return kNvmlSuccess;
}
