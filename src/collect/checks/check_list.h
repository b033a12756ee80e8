// SPDX-License-Identifier: Apache-2.0
// The checks that checks.cc lists, and those of their rules that tests ask directly.
#pragma once

#include <cstdint>

#include "collect/checks.h"

namespace epochmeter::collect {

extern const CheckDef kGpuLibraryCheck, kGpuAccessCheck, kGpuModeCheck, kGpuPowerStateCheck,
    kGpuSharingCheck;
extern const CheckDef kProcCheck, kSysfsCheck, kPidNamespaceCheck, kPressureCheck, kCgroupCheck,
    kSharedMemoryCheck, kEnergyCheck, kClockCheck, kLimitsCheck, kRunFolderCheck,
    kSocketFolderCheck, kPythonCheck, kSchedulerCheck, kProcessCheck;

// What a read of /proc/pressure that ended with `errno_value` (0: none) means.
model::CheckFact PressureFact(int errno_value);
// Of a /dev/shm with so many bytes.
model::CheckFact SharedMemoryFact(const std::string& path, double total_bytes, double free_bytes);

}  // namespace epochmeter::collect
