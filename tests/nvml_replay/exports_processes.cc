// SPDX-License-Identifier: Apache-2.0
// Exported calls: the lists of processes, and accounting.
#include <algorithm>
#include <cstring>

#include "call.h"
#include "generation.h"

namespace nvml_replay {
namespace {

uint32_t InstanceId(int id) { return id < 0 ? kNvmlNoInstance : static_cast<uint32_t>(id); }

std::vector<NvmlProcessDetailV1> List(const Call& call, ProcessKind kind) {
  std::vector<NvmlProcessDetailV1> out;
  for (const ProcessEntry& process : call.player().Processes(call.unit())) {
    if (process.kind != kind) continue;
    NvmlProcessDetailV1 entry{};
    entry.pid = process.pid;
    entry.used_gpu_memory = call.U64Or("process_memory", process.used_bytes);
    entry.gpu_instance_id = InstanceId(process.gpu_instance);
    entry.compute_instance_id = InstanceId(process.compute_instance);
    entry.protected_memory = process.protected_bytes;
    out.push_back(entry);
  }
  return out;
}

// What a driver does with a caller's array: the number of entries there are, INSUFFICIENT_SIZE
// when they don't fit (an empty list always fits). All layouts are beginnings of the detailed one,
// `stride` bytes long.
NvmlReturn FillArray(const Call& call, const std::vector<NvmlProcessDetailV1>& list, size_t stride,
                     uint32_t* count, void* entries) {
  if (count == nullptr) return kNvmlInvalidArgument;
  if (call.player().corrupt()) {
    *count = UINT32_MAX;  // and nothing written
    return kNvmlSuccess;
  }
  const uint32_t room = *count;
  *count = static_cast<uint32_t>(list.size());
  if (room < list.size()) return kNvmlInsufficientSize;
  if (!list.empty() && entries == nullptr) return kNvmlInvalidArgument;
  auto* to = static_cast<char*>(entries);
  for (size_t i = 0; i < list.size(); ++i) std::memcpy(to + i * stride, &list[i], stride);
  return kNvmlSuccess;
}

NvmlReturn FillProcesses(std::string_view function, NvmlDevice device, ProcessKind kind,
                         size_t stride, uint32_t* count, void* entries) {
  const Call call(function, device, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  return FillArray(call, List(call, kind), stride, count, entries);
}

constexpr size_t kV1 = sizeof(NvmlProcessInfoV1);
constexpr size_t kV2 = sizeof(NvmlProcessInfo);

// Drivers 535.43 to 535.86 answered the _v3 names with longer entries.
size_t V3() { return kGeneration.r535_process_entries ? sizeof(NvmlProcessInfoR535) : kV2; }

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::FillProcesses;
using nvml_replay::kV1;
using nvml_replay::kV2;
using nvml_replay::ProcessKind;
using nvml_replay::Takes;
using nvml_replay::V3;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice device,
                                                                     uint32_t* count,
                                                                     void* entries) {
  return FillProcesses("nvmlDeviceGetComputeRunningProcesses_v3", device, ProcessKind::kCompute,
                       V3(), count, entries);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetComputeRunningProcesses_v2(NvmlDevice device,
                                                                     uint32_t* count,
                                                                     void* entries) {
  return FillProcesses("nvmlDeviceGetComputeRunningProcesses_v2", device, ProcessKind::kCompute,
                       kV2, count, entries);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetComputeRunningProcesses(NvmlDevice device,
                                                                  uint32_t* count, void* entries) {
  return FillProcesses("nvmlDeviceGetComputeRunningProcesses", device, ProcessKind::kCompute, kV1,
                       count, entries);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetGraphicsRunningProcesses_v3(NvmlDevice device,
                                                                      uint32_t* count,
                                                                      void* entries) {
  return FillProcesses("nvmlDeviceGetGraphicsRunningProcesses_v3", device, ProcessKind::kGraphics,
                       V3(), count, entries);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetGraphicsRunningProcesses_v2(NvmlDevice device,
                                                                      uint32_t* count,
                                                                      void* entries) {
  return FillProcesses("nvmlDeviceGetGraphicsRunningProcesses_v2", device, ProcessKind::kGraphics,
                       kV2, count, entries);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetGraphicsRunningProcesses(NvmlDevice device,
                                                                   uint32_t* count, void* entries) {
  return FillProcesses("nvmlDeviceGetGraphicsRunningProcesses", device, ProcessKind::kGraphics, kV1,
                       count, entries);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMPSComputeRunningProcesses_v3(NvmlDevice device,
                                                                        uint32_t* count,
                                                                        void* entries) {
  return FillProcesses("nvmlDeviceGetMPSComputeRunningProcesses_v3", device, ProcessKind::kMps,
                       V3(), count, entries);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMPSComputeRunningProcesses_v2(NvmlDevice device,
                                                                        uint32_t* count,
                                                                        void* entries) {
  return FillProcesses("nvmlDeviceGetMPSComputeRunningProcesses_v2", device, ProcessKind::kMps, kV2,
                       count, entries);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMPSComputeRunningProcesses(NvmlDevice device,
                                                                     uint32_t* count,
                                                                     void* entries) {
  return FillProcesses("nvmlDeviceGetMPSComputeRunningProcesses", device, ProcessKind::kMps, kV1,
                       count, entries);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetRunningProcessDetailList(NvmlDevice device,
                                                                   NvmlProcessDetailListV1* list) {
  const Call call("nvmlDeviceGetRunningProcessDetailList", device, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (list == nullptr) return kNvmlInvalidArgument;
  if (list->version != kNvmlProcessDetailListV1Version) return kNvmlArgumentVersionMismatch;
  if (list->mode > 2) return kNvmlInvalidArgument;
  const auto kind = static_cast<ProcessKind>(list->mode);
  return nvml_replay::FillArray(call, nvml_replay::List(call, kind), sizeof(NvmlProcessDetailV1),
                                &list->count, list->entries);
}

// Only here because early R535 drivers are known by it; no replayed machine has it switched on.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetConfComputeMemSizeInfo(NvmlDevice device, void*) {
  const Call call("nvmlDeviceGetConfComputeMemSizeInfo", device);
  return call.rc() != kNvmlSuccess ? call.rc() : kNvmlNotSupported;
}

EPM_REPLAY_U32(nvmlDeviceGetAccountingMode, "accounting_mode")

// Accounting is shown as off, or as on without a finished process.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetAccountingPids(NvmlDevice device, uint32_t* count,
                                                         uint32_t*) {
  const Call call("nvmlDeviceGetAccountingPids", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr) return kNvmlInvalidArgument;
  if (call.U64Or("accounting_mode", 0) == 0) return kNvmlNotSupported;
  *count = 0;
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetAccountingStats(NvmlDevice device, uint32_t, void*) {
  const Call call("nvmlDeviceGetAccountingStats", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  return call.U64Or("accounting_mode", 0) == 0 ? kNvmlNotSupported : kNvmlNotFound;
}
