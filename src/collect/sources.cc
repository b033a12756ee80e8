// SPDX-License-Identifier: Apache-2.0
#include "collect/sources.h"

#include <array>

#include "collect/host_sources.h"
#include "collect/nvml/nvml_sources.h"

namespace epochmeter::collect {

// Both lists are copied on their first call, when the definitions of all files are there for
// certain.
std::span<const SourceDef> HostSources() {
  static const std::array<SourceDef, 15> kSources = {
      kHostCpu,   kHostMemory,     kHostPressure, kHostDisk,    kHostNetwork,
      kHostRdma,  kHostFs,         kHostNuma,     kHostEnergy,  kCgroupMemory,
      kCgroupCpu, kCgroupPressure, kCgroupIo,     kProcessTree, kRecorderSelf};
  return kSources;
}

std::span<const SourceDef> GpuSources() {
  static const std::array<SourceDef, 12> kSources = {
      nvml::kGpuUtilization, nvml::kGpuMemory,       nvml::kGpuPower,     nvml::kGpuTemperature,
      nvml::kGpuClocks,      nvml::kGpuThrottle,     nvml::kGpuActivity,  nvml::kGpuEnergy,
      nvml::kGpuLimits,      nvml::kGpuThrottleTime, nvml::kGpuProcesses, kRecorderSelf};
  return kSources;
}

}  // namespace epochmeter::collect
