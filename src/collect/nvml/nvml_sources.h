// SPDX-License-Identifier: Apache-2.0
// The sources of this folder, for the list in collect/sources.cc. All need SourceContext::nvml.
#pragma once

#include "collect/source.h"

namespace epochmeter::collect::nvml {

extern const SourceDef kGpuJob;  // first: it keeps the others from devices of other jobs
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
extern const SourceDef kGpuBar1;
extern const SourceDef kGpuPowerTrace;
extern const SourceDef kGpuUtilizationTrace;
extern const SourceDef kGpuMaxClocks;
extern const SourceDef kGpuTemperatureLimits;
extern const SourceDef kGpuEngines;
extern const SourceDef kGpuFan;
extern const SourceDef kGpuPcie;
extern const SourceDef kGpuPcieBytes;
extern const SourceDef kGpuNvlink;
extern const SourceDef kGpuHealth;
extern const SourceDef kGpuXid;
extern const SourceDef kGpuProcessUtilization;
extern const SourceDef kGpuMig;

}  // namespace epochmeter::collect::nvml
