// SPDX-License-Identifier: Apache-2.0
// Exported calls: initialisation, versions, enumeration and identity.
#include <strings.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "exports.h"

namespace nvml_replay {
namespace {

NvmlReturn InitNamed(std::string_view function) {
  Player& player = Player::Get();
  const std::lock_guard<std::recursive_mutex> lock(player.mutex());
  NvmlReturn rc = player.Init();
  if (rc != kNvmlSuccess) return rc;
  const Call call(function);
  if (call.rc() != kNvmlSuccess) player.Shutdown();
  return call.rc();
}

NvmlReturn HandleByIndex(std::string_view function, uint32_t index, NvmlDevice* out) {
  Player& player = Player::Get();
  const bool exists = player.initialised() && index < player.scenario().devices.size();
  const Call call = exists ? Call(function, player.HandleOf(index)) : Call(function);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (!exists || out == nullptr) return kNvmlInvalidArgument;
  *out = player.HandleOf(index);
  return kNvmlSuccess;
}

template <typename Matches>
NvmlReturn HandleWhere(const char* function, NvmlDevice* out, Matches matches) {
  {
    const Call call(function);
    if (call.rc() != kNvmlSuccess) return call.rc();
  }
  const Scenario& scenario = Player::Get().scenario();
  for (uint32_t i = 0; i < scenario.devices.size(); ++i) {
    if (matches(scenario.devices[i])) return HandleByIndex("", i, out);
  }
  return kNvmlNotFound;
}

// "00000000:1A:00.0" and CUDA's "0000:1a:00.0" name the same device.
bool SameBusId(const std::string& ours, const char* given) {
  return strcasecmp(ours.c_str(), given) == 0 || strcasecmp(ours.c_str() + 4, given) == 0;
}

NvmlReturn PciInfo(const char* function, NvmlDevice device, NvmlPciInfo* out) {
  const Call call(function, device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  const DeviceModel& model = call.player().model(call.index());
  *out = NvmlPciInfo{};
  std::snprintf(out->bus_id, sizeof(out->bus_id), "%s", model.bus_id.c_str());
  std::snprintf(out->bus_id_legacy, sizeof(out->bus_id_legacy), "%s", model.bus_id.c_str() + 4);
  out->bus = model.bus;
  out->pci_device_id = 0x233510deU;
  return kNvmlSuccess;
}

NvmlReturn DeviceText(const char* function, NvmlDevice device, std::string DeviceModel::*member,
                      char* out, uint32_t size) {
  const Call call(function, device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  return CopyText(call.player().model(call.index()).*member, out, size);
}

}  // namespace

NvmlReturn CopyText(const std::string& text, char* out, uint32_t size) {
  if (out == nullptr) return kNvmlInvalidArgument;
  if (size <= text.size()) return kNvmlInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kNvmlSuccess;
}

}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::CopyText;
using nvml_replay::DeviceModel;
using nvml_replay::Player;

EPM_REPLAY_EXPORT NvmlReturn nvmlInit() { return nvml_replay::InitNamed("nvmlInit"); }
EPM_REPLAY_EXPORT NvmlReturn nvmlInit_v2() { return nvml_replay::InitNamed("nvmlInit_v2"); }
EPM_REPLAY_EXPORT NvmlReturn nvmlInitWithFlags(uint32_t) {
  return nvml_replay::InitNamed("nvmlInitWithFlags");
}

EPM_REPLAY_EXPORT NvmlReturn nvmlShutdown() {
  const Call call("nvmlShutdown");
  return call.rc() != kNvmlSuccess ? call.rc() : call.player().Shutdown();
}

EPM_REPLAY_EXPORT const char* nvmlErrorString(NvmlReturn code) {
  switch (code) {
    case kNvmlSuccess:
      return "Success";
    case kNvmlUninitialized:
      return "Uninitialized";
    case kNvmlInvalidArgument:
      return "Invalid Argument";
    case kNvmlNotSupported:
      return "Not Supported";
    case kNvmlNoPermission:
      return "Insufficient Permissions";
    case kNvmlNotFound:
      return "Not Found";
    case kNvmlInsufficientSize:
      return "Insufficient Size";
    case kNvmlDriverNotLoaded:
      return "Driver Not Loaded";
    case kNvmlTimeout:
      return "Timeout";
    case kNvmlFunctionNotFound:
      return "Function Not Found";
    case kNvmlGpuIsLost:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemGetDriverVersion(char* out, uint32_t size) {
  const Call call("nvmlSystemGetDriverVersion");
  if (call.rc() != kNvmlSuccess) return call.rc();
  return CopyText(call.player().scenario().driver_version, out, size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemGetNVMLVersion(char* out, uint32_t size) {
  const Call call("nvmlSystemGetNVMLVersion");
  if (call.rc() != kNvmlSuccess) return call.rc();
  return CopyText(call.player().scenario().nvml_version, out, size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetCount_v2(uint32_t* count) {
  const Call call("nvmlDeviceGetCount_v2");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr) return kNvmlInvalidArgument;
  *count = static_cast<uint32_t>(call.player().scenario().devices.size());
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetCount(uint32_t* count) {
  return nvmlDeviceGetCount_v2(count);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleByIndex_v2(uint32_t index, NvmlDevice* device) {
  return nvml_replay::HandleByIndex("nvmlDeviceGetHandleByIndex_v2", index, device);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleByIndex(uint32_t index, NvmlDevice* device) {
  return nvml_replay::HandleByIndex("nvmlDeviceGetHandleByIndex", index, device);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleByUUID(const char* uuid, NvmlDevice* device) {
  if (uuid == nullptr) return kNvmlInvalidArgument;
  return nvml_replay::HandleWhere("nvmlDeviceGetHandleByUUID", device,
                                  [&](const DeviceModel& model) { return model.uuid == uuid; });
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetHandleByPciBusId_v2(const char* id, NvmlDevice* device) {
  if (id == nullptr) return kNvmlInvalidArgument;
  return nvml_replay::HandleWhere(
      "nvmlDeviceGetHandleByPciBusId_v2", device,
      [&](const DeviceModel& model) { return nvml_replay::SameBusId(model.bus_id, id); });
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetUUID(NvmlDevice device, char* out, uint32_t size) {
  return nvml_replay::DeviceText("nvmlDeviceGetUUID", device, &DeviceModel::uuid, out, size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetName(NvmlDevice device, char* out, uint32_t size) {
  return nvml_replay::DeviceText("nvmlDeviceGetName", device, &DeviceModel::name, out, size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetSerial(NvmlDevice device, char* out, uint32_t size) {
  return nvml_replay::DeviceText("nvmlDeviceGetSerial", device, &DeviceModel::serial, out, size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPciInfo* out) {
  return nvml_replay::PciInfo("nvmlDeviceGetPciInfo_v3", device, out);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetPciInfo_v2(NvmlDevice device, NvmlPciInfo* out) {
  return nvml_replay::PciInfo("nvmlDeviceGetPciInfo_v2", device, out);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetIndex(NvmlDevice device, uint32_t* index) {
  const Call call("nvmlDeviceGetIndex", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (index == nullptr) return kNvmlInvalidArgument;
  *index = static_cast<uint32_t>(call.index());
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMinorNumber(NvmlDevice device, uint32_t* minor) {
  return nvmlDeviceGetIndex(device, minor);
}
