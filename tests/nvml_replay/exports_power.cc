// SPDX-License-Identifier: Apache-2.0
// Exported calls: power, energy, clocks and what holds them back.
#include "call.h"
#include "clock.h"

namespace nvml_replay {
namespace {

// SM and graphics share a clock unless the script tells them apart.
std::string ClockKey(const Call& call, uint32_t clock, const std::string& prefix) {
  if (clock == kNvmlClockMem) return prefix + "mem_mhz";
  if (clock == kNvmlClockVideo) return prefix + "video_mhz";
  const std::string graphics = prefix + "graphics_mhz";
  const bool own = clock == kNvmlClockGraphics && call.player().HasKey(call.unit(), graphics);
  return own ? graphics : prefix + "sm_mhz";
}

NvmlReturn Clock(std::string_view function, NvmlDevice device, uint32_t clock, uint32_t* megahertz,
                 const std::string& prefix) {
  const Call call(function, device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (clock > kNvmlClockVideo) return kNvmlInvalidArgument;
  return call.Put(ClockKey(call, clock, prefix), megahertz);
}

const char* PolicyKey(uint32_t policy) {
  switch (policy) {
    case kNvmlPolicyPower:
      return "violation_power_ns";
    case kNvmlPolicyThermal:
      return "violation_thermal_ns";
    case kNvmlPolicySyncBoost:
      return "violation_sync_boost_ns";
    case kNvmlPolicyBoardLimit:
      return "violation_board_ns";
    case kNvmlPolicyLowUtilization:
      return "violation_lowutil_ns";
    case kNvmlPolicyReliability:
      return "violation_reliability_ns";
    case kNvmlPolicyAppClocks:
      return "violation_app_clocks_ns";
    case kNvmlPolicyBaseClocks:
      return "violation_base_clocks_ns";
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::Clock;

EPM_REPLAY_U32(nvmlDeviceGetPowerUsage, "power_mw")
EPM_REPLAY_U32(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw")
EPM_REPLAY_U32(nvmlDeviceGetPowerManagementLimit, "power_management_limit_mw")
EPM_REPLAY_U32(nvmlDeviceGetPowerManagementDefaultLimit, "power_default_limit_mw")

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetPowerManagementLimitConstraints(NvmlDevice device,
                                                                          uint32_t* least,
                                                                          uint32_t* most) {
  const Call call("nvmlDeviceGetPowerManagementLimitConstraints", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  const NvmlReturn rc = call.Put("power_min_limit_mw", least);
  return rc != kNvmlSuccess ? rc : call.Put("power_max_limit_mw", most);
}

EPM_REPLAY_U64(nvmlDeviceGetTotalEnergyConsumption, "energy_mj")

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetClockInfo(NvmlDevice device, uint32_t clock,
                                                    uint32_t* megahertz) {
  return Clock("nvmlDeviceGetClockInfo", device, clock, megahertz, "");
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMaxClockInfo(NvmlDevice device, uint32_t clock,
                                                       uint32_t* megahertz) {
  return Clock("nvmlDeviceGetMaxClockInfo", device, clock, megahertz, "max_");
}

EPM_REPLAY_U32(nvmlDeviceGetPerformanceState, "pstate")
EPM_REPLAY_U64(nvmlDeviceGetCurrentClocksEventReasons, "clocks_event_reasons")
EPM_REPLAY_U64(nvmlDeviceGetCurrentClocksThrottleReasons, "clocks_event_reasons")
EPM_REPLAY_U64(nvmlDeviceGetSupportedClocksEventReasons, "clocks_supported_reasons")
EPM_REPLAY_U64(nvmlDeviceGetSupportedClocksThrottleReasons, "clocks_supported_reasons")

// The reference is a CPU time stamp in us, the violation ns since the driver was loaded.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetViolationStatus(NvmlDevice device, uint32_t policy,
                                                          NvmlViolationTime* out) {
  const Call call("nvmlDeviceGetViolationStatus", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  const char* key = nvml_replay::PolicyKey(policy);
  if (key == nullptr || out == nullptr) return kNvmlInvalidArgument;
  uint64_t violation_ns = 0;
  const NvmlReturn rc = call.Put(key, &violation_ns);
  if (rc == kNvmlSuccess) {
    *out = {static_cast<uint64_t>(nvml_replay::WallMicros()), violation_ns};
  }
  return rc;
}
