// SPDX-License-Identifier: Apache-2.0
// Exported calls: temperatures and fans.
#include "call.h"

namespace nvml_replay {
namespace {

const char* ThresholdKey(uint32_t which) {
  switch (which) {
    case kNvmlThresholdShutdown:
      return "temp_shutdown_c";
    case kNvmlThresholdSlowdown:
      return "temp_slowdown_c";
    case kNvmlThresholdMemMax:
      return "temp_mem_max_c";
    case kNvmlThresholdGpuMax:
      return "temp_gpu_max_c";
    default:
      return nullptr;
  }
}

// The key of one fan, or the one for all of them.
std::string FanKey(const Call& call, std::string_view key, uint32_t fan) {
  const std::string own = Part(key, fan);
  return call.player().HasKey(call.unit(), own) ? own : std::string(key);
}

// One fan, unless "fans" says otherwise; none when no fan has a value.
NvmlReturn CheckFan(const Call& call, std::string_view key, uint32_t fan) {
  const bool any = call.player().HasKey(call.unit(), FanKey(call, key, fan));
  if (!any && call.U64Or("fans", 0) == 0) return kNvmlNotSupported;
  return fan < call.U64Or("fans", 1) ? kNvmlSuccess : kNvmlInvalidArgument;
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::PutNamed;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetTemperature(NvmlDevice device, uint32_t sensor,
                                                      uint32_t* celsius) {
  if (sensor != kNvmlTemperatureGpu) return kNvmlInvalidArgument;
  return PutNamed("nvmlDeviceGetTemperature", device, "temp_c", celsius);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetTemperatureV(NvmlDevice device, NvmlTemperatureV1* out) {
  const Call call("nvmlDeviceGetTemperatureV", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr || out->sensor != kNvmlTemperatureGpu) return kNvmlInvalidArgument;
  if (out->version != kNvmlTemperatureV1Version) return kNvmlArgumentVersionMismatch;
  return call.Put("temp_c", &out->temperature_c);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetTemperatureThreshold(NvmlDevice device, uint32_t which,
                                                               uint32_t* celsius) {
  const char* key = nvml_replay::ThresholdKey(which);
  if (key == nullptr) return kNvmlInvalidArgument;
  return PutNamed("nvmlDeviceGetTemperatureThreshold", device, key, celsius);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMarginTemperature(NvmlDevice device,
                                                            NvmlMarginTemperatureV1* out) {
  const Call call("nvmlDeviceGetMarginTemperature", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  if (out->version != static_cast<uint32_t>(kNvmlMarginTemperatureV1Version)) {
    return kNvmlArgumentVersionMismatch;
  }
  return call.Put("margin_temperature_c", &out->margin_c);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetNumFans(NvmlDevice device, uint32_t* count) {
  const Call call("nvmlDeviceGetNumFans", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr) return kNvmlInvalidArgument;
  const bool fan = call.player().HasKey(call.unit(), "fan_percent");
  *count = static_cast<uint32_t>(call.U64Or("fans", fan ? 1 : 0));
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetFanSpeed_v2(NvmlDevice device, uint32_t fan,
                                                      uint32_t* percent) {
  const Call call("nvmlDeviceGetFanSpeed_v2", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  const NvmlReturn rc = nvml_replay::CheckFan(call, "fan_percent", fan);
  return rc != kNvmlSuccess ? rc : call.Put(nvml_replay::FanKey(call, "fan_percent", fan), percent);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetFanSpeed(NvmlDevice device, uint32_t* percent) {
  const Call call("nvmlDeviceGetFanSpeed", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  return call.Put(nvml_replay::FanKey(call, "fan_percent", 0), percent);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetFanSpeedRPM(NvmlDevice device, NvmlFanSpeedInfoV1* info) {
  const Call call("nvmlDeviceGetFanSpeedRPM", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (info == nullptr) return kNvmlInvalidArgument;
  if (info->version != static_cast<uint32_t>(kNvmlFanSpeedInfoV1Version)) {
    return kNvmlArgumentVersionMismatch;
  }
  const NvmlReturn rc = nvml_replay::CheckFan(call, "fan_rpm", info->fan);
  return rc != kNvmlSuccess ? rc
                            : call.Put(nvml_replay::FanKey(call, "fan_rpm", info->fan), &info->rpm);
}
