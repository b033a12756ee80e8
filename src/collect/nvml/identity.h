// SPDX-License-Identifier: Apache-2.0
// What a GPU and its driver are, read once for each handle. Never asks CUDA for its version: that
// call loads libcuda into this process.
#pragma once

#include <optional>
#include <string>

#include "collect/nvml/library.h"
#include "model/record.h"

namespace epochmeter::collect::nvml {

struct Identity {
  uint32_t architecture = 0;  // NvmlArchitecture; 0 unknown
  bool mig = false;
  model::Labels attributes;
};
// Attributes that can't be read are left out. `root` is a prefix of /proc and /etc, for tests.
Identity ReadIdentity(const Library& library, NvmlDevice handle, const std::string& sysfs_bus_id,
                      const std::string& root);

std::string ReadUuid(const Api& api, NvmlDevice handle);
std::string ReadName(const Api& api, NvmlDevice handle);
// As NVML prints it, "00000000:1A:00.0".
std::string ReadBusId(const Api& api, NvmlDevice handle);

// "Hopper"; empty when unknown.
std::string ArchitectureName(uint32_t architecture);
// What nvmlDeviceGetPowerUsage means on a chip: "average_1s" or "instant"; empty when unknown. A
// mean from Ampere on, except on GA100 (compute capability 8.0).
std::string PowerKind(uint32_t architecture, int32_t major, int32_t minor);
// The newest CUDA version that a driver's branch serves ("580.65.06" -> "13.0"); empty for a branch
// that is not known.
std::string CudaVersionOf(const std::string& driver_version);
// The version in the text of /proc/driver/nvidia/version; empty when there is none.
std::string KernelModuleVersion(const std::string& text);

// "0000:1a:00.0": the form of sysfs and CUDA for NVML's "00000000:1A:00.0".
std::string SysfsBusId(const std::string& nvml_bus_id);

}  // namespace epochmeter::collect::nvml
