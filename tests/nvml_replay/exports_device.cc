// SPDX-License-Identifier: Apache-2.0
// Exported calls that read one value of a device, and the process lists.
#include <algorithm>

#include "exports.h"

namespace nvml_replay {
namespace {

struct MemoryNow {
  uint64_t total, reserved, free, used;
};

NvmlReturn ReadMemory(const Call& call, MemoryNow* out) {
  const auto total = call.U64("memory_total");
  const auto used = call.U64("mem_used");
  if (!total || !used) return kNvmlNotSupported;
  out->total = *total;
  out->used = *used;
  out->reserved = call.U64("memory_reserved").value_or(0);
  const uint64_t taken = out->reserved + *used;
  out->free = call.U64("mem_free").value_or(*total > taken ? *total - taken : 0);
  return kNvmlSuccess;
}

// What a driver does with a caller's array: the number of entries there are, INSUFFICIENT_SIZE
// when they don't fit (an empty list always fits).
template <typename Entry, typename Fill>
NvmlReturn FillProcesses(const char* function, NvmlDevice device, uint32_t* count, Entry* entries,
                         Fill fill) {
  const Call call(function, device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr) return kNvmlInvalidArgument;
  const std::vector<ProcessEntry> list = call.player().Processes(call.index());
  const uint32_t room = *count;
  *count = static_cast<uint32_t>(list.size());
  if (room < list.size()) return kNvmlInsufficientSize;
  if (!list.empty() && entries == nullptr) return kNvmlInvalidArgument;
  for (size_t i = 0; i < list.size(); ++i) {
    entries[i] = Entry{};
    entries[i].pid = list[i].pid;
    entries[i].used_gpu_memory = ToU64(call.player()
                                           .Value(call.index(), "process_memory")
                                           .value_or(static_cast<double>(list[i].used_bytes)));
    fill(&entries[i]);
  }
  return kNvmlSuccess;
}

constexpr uint32_t kNoInstance = UINT32_MAX;

NvmlReturn PutNamed(const char* function, NvmlDevice device, const char* key, uint32_t* out) {
  const Call call(function, device);
  return call.rc() != kNvmlSuccess ? call.rc() : call.Put(key, out);
}

const char* ClockKey(uint32_t clock, bool max) {
  if (clock == kNvmlClockSm || clock == kNvmlClockGraphics) return max ? "max_sm_mhz" : "sm_mhz";
  if (clock == kNvmlClockMem) return max ? "max_mem_mhz" : "mem_mhz";
  return max ? "max_video_mhz" : "video_mhz";
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::ClockKey;
using nvml_replay::FillProcesses;
using nvml_replay::kNoInstance;
using nvml_replay::MemoryNow;
using nvml_replay::PutNamed;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMemoryInfo_v2(NvmlDevice device, NvmlMemoryV2* memory) {
  const Call call("nvmlDeviceGetMemoryInfo_v2", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (memory == nullptr) return kNvmlInvalidArgument;
  if (memory->version != kNvmlMemoryV2Version) return kNvmlArgumentVersionMismatch;
  MemoryNow now{};
  const NvmlReturn rc = ReadMemory(call, &now);
  if (rc != kNvmlSuccess) return rc;
  *memory = {kNvmlMemoryV2Version, now.total, now.reserved, now.free, now.used};
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMemoryInfo(NvmlDevice device, NvmlMemory* memory) {
  const Call call("nvmlDeviceGetMemoryInfo", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (memory == nullptr) return kNvmlInvalidArgument;
  MemoryNow now{};
  const NvmlReturn rc = ReadMemory(call, &now);
  if (rc != kNvmlSuccess) return rc;
  *memory = {now.total, now.free, now.used + now.reserved};
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetUtilizationRates(NvmlDevice device,
                                                           NvmlUtilization* out) {
  const Call call("nvmlDeviceGetUtilizationRates", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  const NvmlReturn rc = call.Put("util_gpu", &out->gpu);
  return rc != kNvmlSuccess ? rc : call.Put("util_mem", &out->memory);
}

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
  uint32_t celsius = 0;
  const NvmlReturn rc = call.Put("temp_c", &celsius);
  if (rc == kNvmlSuccess) out->temperature_c = static_cast<int32_t>(celsius);
  return rc;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetTemperatureThreshold(NvmlDevice device, uint32_t which,
                                                               uint32_t* celsius) {
  const char* key = which == kNvmlThresholdSlowdown ? "temp_slowdown_c" : "temp_shutdown_c";
  return PutNamed("nvmlDeviceGetTemperatureThreshold", device, key, celsius);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetPowerUsage(NvmlDevice device, uint32_t* milliwatts) {
  return PutNamed("nvmlDeviceGetPowerUsage", device, "power_mw", milliwatts);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetEnforcedPowerLimit(NvmlDevice device,
                                                             uint32_t* milliwatts) {
  return PutNamed("nvmlDeviceGetEnforcedPowerLimit", device, "power_limit_mw", milliwatts);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetTotalEnergyConsumption(NvmlDevice device,
                                                                 uint64_t* millijoules) {
  const Call call("nvmlDeviceGetTotalEnergyConsumption", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (millijoules == nullptr) return kNvmlInvalidArgument;
  const auto value = call.U64("energy_mj");
  if (!value) return kNvmlNotSupported;
  *millijoules = *value;
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetClockInfo(NvmlDevice device, uint32_t clock,
                                                    uint32_t* megahertz) {
  return PutNamed("nvmlDeviceGetClockInfo", device, ClockKey(clock, false), megahertz);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMaxClockInfo(NvmlDevice device, uint32_t clock,
                                                       uint32_t* megahertz) {
  return PutNamed("nvmlDeviceGetMaxClockInfo", device, ClockKey(clock, true), megahertz);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice device,
                                                                    uint64_t* mask) {
  const Call call("nvmlDeviceGetCurrentClocksEventReasons", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (mask == nullptr) return kNvmlInvalidArgument;
  const auto value = call.U64("clocks_event_reasons");
  if (!value) return kNvmlNotSupported;
  *mask = *value;
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice device,
                                                                       uint64_t* mask) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, mask);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMigMode(NvmlDevice device, uint32_t* current,
                                                  uint32_t* pending) {
  const NvmlReturn rc = PutNamed("nvmlDeviceGetMigMode", device, "mig_mode", current);
  if (rc == kNvmlSuccess && pending != nullptr) *pending = *current;
  return rc;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetPcieThroughput(NvmlDevice device, uint32_t counter,
                                                         uint32_t* kib_per_s) {
  const Call call("nvmlDeviceGetPcieThroughput", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (kib_per_s == nullptr) return kNvmlInvalidArgument;
  const char* key = counter == kNvmlPcieTx ? "gpm.pcie_tx_mib_s" : "gpm.pcie_rx_mib_s";
  const auto mib = call.player().Value(call.index(), key);
  if (!mib) return kNvmlNotSupported;
  *kib_per_s = static_cast<uint32_t>(nvml_replay::ToU64(*mib * 1024));
  return kNvmlSuccess;
}

// Early R535 drivers answered the _v3 name with 32-byte entries and had no detail list;
// EPM_REPLAY_R535 plays one of them.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetConfComputeMemSizeInfo(NvmlDevice device, void*) {
  const Call call("nvmlDeviceGetConfComputeMemSizeInfo", device);
  return call.rc() != kNvmlSuccess ? call.rc() : kNvmlNotSupported;
}
#ifdef EPM_REPLAY_R535
using RunningProcess = NvmlProcessInfoR535;
#else
using RunningProcess = NvmlProcessInfo;
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetRunningProcessDetailList(NvmlDevice device, void*) {
  const Call call("nvmlDeviceGetRunningProcessDetailList", device);
  return call.rc() != kNvmlSuccess ? call.rc() : kNvmlNotSupported;
}
#endif

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice device,
                                                                     uint32_t* count,
                                                                     RunningProcess* entries) {
  return FillProcesses("nvmlDeviceGetComputeRunningProcesses_v3", device, count, entries,
                       [](RunningProcess* entry) {
                         entry->gpu_instance_id = kNoInstance;
                         entry->compute_instance_id = kNoInstance;
                       });
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetComputeRunningProcesses(NvmlDevice device,
                                                                  uint32_t* count,
                                                                  NvmlProcessInfoV1* entries) {
  return FillProcesses("nvmlDeviceGetComputeRunningProcesses", device, count, entries,
                       [](NvmlProcessInfoV1*) {});
}
