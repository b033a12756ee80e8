// SPDX-License-Identifier: Apache-2.0
#include "collect/checks.h"

#include <array>

#include "collect/checks/check_list.h"

namespace epochmeter::collect {

// Copied on the first call, when the definitions of all files are there for certain.
std::span<const CheckDef> Checks() {
  static const std::array kChecks = {
      kGpuLibraryCheck, kGpuAccessCheck, kGpuModeCheck,      kGpuPowerStateCheck,
      kGpuSharingCheck, kProcCheck,      kPidNamespaceCheck, kSysfsCheck,
      kCgroupCheck,     kPressureCheck,  kSharedMemoryCheck, kEnergyCheck,
      kClockCheck,      kLimitsCheck,    kRunFolderCheck,    kSocketFolderCheck,
      kPythonCheck,     kSchedulerCheck, kProcessCheck};
  return kChecks;
}

}  // namespace epochmeter::collect
