// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/process_list.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace epochmeter::collect::nvml {
namespace {

constexpr uint32_t kPidMax = 4194304;  // the kernel's PID_MAX_LIMIT
constexpr uint32_t kMostEntries = 100000;

using ListCall = NvmlReturn (*)(NvmlDevice, uint32_t*, void*);

// All layouts have the pid at offset 0 and the memory at 8; they differ in length.
size_t EntrySize(ProcessLayout layout) {
  switch (layout) {
    case ProcessLayout::kV1:
      return sizeof(NvmlProcessInfoV1);
    case ProcessLayout::kR535:
      return sizeof(NvmlProcessInfoR535);
    default:
      return sizeof(NvmlProcessInfo);
  }
}

NvmlReturn ReadOne(ListCall call, size_t entry_size, NvmlDevice handle,
                   std::vector<ListedProcess>* out) {
  if (call == nullptr) return kNvmlFunctionNotFound;
  uint32_t room = 32;
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::vector<uint64_t> buffer(room * sizeof(NvmlProcessInfoR535) / sizeof(uint64_t));
    uint32_t count = room;
    const NvmlReturn rc = call(handle, &count, buffer.data());
    if (rc == kNvmlInsufficientSize && count < kMostEntries) {
      room = 2 * std::max(count, room) + 8;
      continue;
    }
    if (rc != kNvmlSuccess) return rc;
    const auto* bytes = reinterpret_cast<const char*>(buffer.data());
    for (uint32_t i = 0; i < std::min(count, room); ++i) {
      ListedProcess entry;
      std::memcpy(&entry.pid, bytes + i * entry_size, sizeof entry.pid);
      std::memcpy(&entry.memory_bytes, bytes + i * entry_size + 8, sizeof entry.memory_bytes);
      if (entry.memory_bytes == 0) entry.memory_bytes = ListedProcess::kNotTold;
      out->push_back(entry);
    }
    return kNvmlSuccess;
  }
  return kNvmlInsufficientSize;
}

bool IsPlausible(const std::vector<ListedProcess>& list, uint64_t total) {
  return std::all_of(list.begin(), list.end(), [total](const ListedProcess& entry) {
    const bool told = entry.memory_bytes != ListedProcess::kNotTold;
    return entry.pid > 0 && entry.pid <= kPidMax &&
           !(told && total > 0 && entry.memory_bytes > total);
  });
}

// One list holds a process once per instance; unknown and known make unknown.
void AddUp(const std::vector<ListedProcess>& list, std::map<uint32_t, ListedProcess>* by_pid) {
  for (const ListedProcess& entry : list) {
    const auto [known, fresh] = by_pid->emplace(entry.pid, entry);
    if (fresh) continue;
    uint64_t& memory = known->second.memory_bytes;
    const bool told =
        memory != ListedProcess::kNotTold && entry.memory_bytes != ListedProcess::kNotTold;
    memory = told ? memory + entry.memory_bytes : ListedProcess::kNotTold;
  }
}

}  // namespace

ProcessList ReadProcessList(const Api& api, NvmlDevice handle, uint64_t memory_total_bytes) {
  ProcessList out;
  const size_t size = EntrySize(api.process_layout);
  std::map<uint32_t, ListedProcess> all;
  const auto add = [&](ListCall call, bool compute) {
    std::vector<ListedProcess> list;
    const NvmlReturn rc = ReadOne(call, size, handle, &list);
    if (rc != kNvmlSuccess) return rc;
    out.plausible = out.plausible && IsPlausible(list, memory_total_bytes);
    for (ListedProcess& entry : list) entry.compute = compute;
    std::map<uint32_t, ListedProcess> by_pid;
    AddUp(list, &by_pid);
    all.insert(by_pid.begin(), by_pid.end());  // a pid of an earlier list stays as it was there
    return rc;
  };
  out.code = add(api.compute_processes, true);
  if (out.code != kNvmlSuccess) return out;
  add(api.mps_processes, true);
  add(api.graphics_processes, false);
  if (!out.plausible) return out;
  for (const auto& [pid, process] : all) out.processes.push_back(process);
  return out;
}

}  // namespace epochmeter::collect::nvml
