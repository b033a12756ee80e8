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
  static const std::array kSources = {nvml::kGpuJob,
                                      nvml::kGpuUtilization,
                                      nvml::kGpuMemory,
                                      nvml::kGpuPower,
                                      nvml::kGpuTemperature,
                                      nvml::kGpuClocks,
                                      nvml::kGpuThrottle,
                                      nvml::kGpuActivity,
                                      nvml::kGpuEnergy,
                                      nvml::kGpuLimits,
                                      nvml::kGpuThrottleTime,
                                      nvml::kGpuProcesses,
                                      nvml::kGpuBar1,
                                      nvml::kGpuPowerTrace,
                                      nvml::kGpuUtilizationTrace,
                                      nvml::kGpuMaxClocks,
                                      nvml::kGpuTemperatureLimits,
                                      nvml::kGpuEngines,
                                      nvml::kGpuFan,
                                      nvml::kGpuPcie,
                                      nvml::kGpuPcieBytes,
                                      nvml::kGpuNvlink,
                                      nvml::kGpuHealth,
                                      nvml::kGpuXid,
                                      nvml::kGpuProcessUtilization,
                                      nvml::kGpuMig,
                                      kRecorderSelf};
  return kSources;
}

}  // namespace epochmeter::collect
