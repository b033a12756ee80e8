// SPDX-License-Identifier: Apache-2.0
// The processes that the driver lists on a device, in whatever layout its version has.
#pragma once

#include <cstdint>
#include <vector>

#include "collect/nvml/session.h"

namespace epochmeter::collect::nvml {

struct ListedProcess {
  static constexpr uint64_t kNotTold = UINT64_MAX;
  uint32_t pid = 0;
  uint64_t memory_bytes = kNotTold;
  bool compute = true;  // false: graphics only
};

struct ProcessList {
  NvmlReturn code = kNvmlSuccess;        // of the compute list
  bool plausible = true;                 // false: a misread list; without entries
  std::vector<ListedProcess> processes;  // each pid once, with its memory of all instances
};

// Compute, MPS and graphics processes; the latter two are left out where the driver has no such
// list. `memory_total_bytes` is the most one process can have, 0 when not known.
//
// A pid of 0 or above the kernel's limit, or more memory than there is, means that the whole list
// was misread: drivers changed the layout under the same name, and some return uninitialised
// entries. A process on the list has a context, so 0 bytes mean that they were not told: seen where
// only one of two lists speaks the container's pids.
ProcessList ReadProcessList(const Api& api, NvmlDevice handle, uint64_t memory_total_bytes);

}  // namespace epochmeter::collect::nvml
