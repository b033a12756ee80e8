// SPDX-License-Identifier: Apache-2.0
// The sources of this folder, for the list in collect/sources.cc. All need SourceContext::nvml.
#pragma once

#include "collect/source.h"

namespace epochmeter::collect::nvml {

extern const SourceDef kGpuUtilization;
extern const SourceDef kGpuMemory;
extern const SourceDef kGpuPower;
extern const SourceDef kGpuTemperature;
extern const SourceDef kGpuClocks;
extern const SourceDef kGpuThrottle;
extern const SourceDef kGpuActivity;  // GPM
extern const SourceDef kGpuEnergy;
extern const SourceDef kGpuLimits;
extern const SourceDef kGpuThrottleTime;
extern const SourceDef kGpuProcesses;

}  // namespace epochmeter::collect::nvml
