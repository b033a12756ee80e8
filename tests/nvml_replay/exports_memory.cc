// SPDX-License-Identifier: Apache-2.0
// Exported calls: memory.
#include "call.h"

namespace nvml_replay {
namespace {

struct MemoryNow {
  uint64_t total, reserved, free, used;
};

// Without "mem_used" the call has no answer. A script shows "total": 0 for chips that share the
// memory of the machine.
NvmlReturn ReadMemory(const Call& call, MemoryNow* out) {
  NvmlReturn rc = call.Put("memory_total", &out->total);
  if (rc == kNvmlSuccess) rc = call.Put("mem_used", &out->used);
  if (rc != kNvmlSuccess) return rc;
  out->reserved = call.U64Or("memory_reserved", 0);
  const uint64_t taken = out->reserved + out->used;
  out->free = call.U64Or("mem_free", out->total > taken ? out->total - taken : 0);
  return kNvmlSuccess;
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::MemoryNow;
using nvml_replay::Takes;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMemoryInfo_v2(NvmlDevice device, NvmlMemoryV2* memory) {
  const Call call("nvmlDeviceGetMemoryInfo_v2", device, Takes::kBoth);
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
  const Call call("nvmlDeviceGetMemoryInfo", device, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (memory == nullptr) return kNvmlInvalidArgument;
  MemoryNow now{};
  const NvmlReturn rc = ReadMemory(call, &now);
  if (rc != kNvmlSuccess) return rc;
  *memory = {now.total, now.free, now.used + now.reserved};
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetBAR1MemoryInfo(NvmlDevice device, NvmlBar1Memory* out) {
  const Call call("nvmlDeviceGetBAR1MemoryInfo", device, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  NvmlBar1Memory now{};
  NvmlReturn rc = call.Put("bar1_total", &now.total);
  if (rc == kNvmlSuccess) rc = call.Put("bar1_used", &now.used);
  if (rc != kNvmlSuccess) return rc;
  now.free = now.total > now.used ? now.total - now.used : 0;
  *out = now;
  return kNvmlSuccess;
}
