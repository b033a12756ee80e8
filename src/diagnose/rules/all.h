// SPDX-License-Identifier: Apache-2.0
// Every rule, by its file. The order in which they run is in rules.cc.
#pragma once

#include "diagnose/rules.h"

namespace epochmeter::diagnose::rules {

extern const RuleDef kAllocatorSlack;
extern const RuleDef kBatchHeadroom;
extern const RuleDef kBurstyGpu;
extern const RuleDef kCheckpointStall;
extern const RuleDef kCpuBound;
extern const RuleDef kDataStarvation;
extern const RuleDef kEccErrors;
extern const RuleDef kEvalShare;
extern const RuleDef kGpuImbalance;
extern const RuleDef kGpuMemoryLeak;
extern const RuleDef kHostMemoryLeak;
extern const RuleDef kHostMemoryPressure;
extern const RuleDef kIdleGpu;
extern const RuleDef kInvisibleMemory;
extern const RuleDef kIoBound;
extern const RuleDef kLossNotFinite;
extern const RuleDef kLossSpike;
extern const RuleDef kLowGpuUtilization;
extern const RuleDef kLowSmActivity;
extern const RuleDef kMemorySpike;
extern const RuleDef kNvlinkErrors;
extern const RuleDef kOomForecast;
extern const RuleDef kOutOfMemory;
extern const RuleDef kPcieBound;
extern const RuleDef kPeriodicStall;
extern const RuleDef kPowerThrottle;
extern const RuleDef kPrintedMemoryGrowth;
extern const RuleDef kRecorderHealth;
extern const RuleDef kShmExhaustion;
extern const RuleDef kSlowStart;
extern const RuleDef kSlowingDown;
extern const RuleDef kStalledSteps;
extern const RuleDef kStepOutlier;
extern const RuleDef kStragglerRank;
extern const RuleDef kTensorCoresUnused;
extern const RuleDef kThermalThrottle;
extern const RuleDef kWorkerCount;
extern const RuleDef kWorkerMemoryGrowth;
extern const RuleDef kXidError;
extern const RuleDef kZombieGpuMemory;

}  // namespace epochmeter::diagnose::rules
