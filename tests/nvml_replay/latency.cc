// SPDX-License-Identifier: Apache-2.0
#include "latency.h"

#include <array>
#include <cstdint>

#include "clock.h"

namespace nvml_replay {
namespace {

// Medians; everything else costs about a microsecond. A batch of fields costs the sum of its
// members.
struct Cost {
  std::string_view function;
  int64_t us;
};
constexpr std::array kCosts = {
    Cost{"nvmlDeviceGetMemoryInfo", 9},
    Cost{"nvmlDeviceGetMemoryInfo_v2", 11},
    Cost{"nvmlDeviceGetComputeRunningProcesses_v3", 9},
    Cost{"nvmlDeviceGetProcessUtilization", 2600},
    Cost{"nvmlDeviceGetProcessesUtilizationInfo", 2600},
    Cost{"nvmlDeviceGetTotalEnergyConsumption", 3300},
    Cost{"nvmlDeviceGetFanSpeed", 360},
    Cost{"nvmlDeviceGetFanSpeed_v2", 360},
    Cost{"nvmlGpmSampleGet", 38},
    Cost{"nvmlGpmMigSampleGet", 38},
    Cost{"nvmlGpmMetricsGet", 1900},
    Cost{"nvmlDeviceGetClockInfo", 2},
    Cost{"nvmlDeviceGetPowerUsage", 2},
    Cost{"samples:0", 550},
    Cost{"samples:1", 2600},
    Cost{"samples:2", 2600},
    Cost{"field:75", 900},
    Cost{"field:83", 3300},
    Cost{"field:94", 370},
    Cost{"field:138", 1400},
    Cost{"field:139", 1400},
    Cost{"field:191", 3300},
    Cost{"field:197", 370},
    Cost{"field:198", 370},
};

}  // namespace

void SpendMeasured(std::string_view function) {
  // This one waits for a 20 ms window inside the driver; the others keep a core busy.
  if (function == "nvmlDeviceGetPcieThroughput") return SleepNs(20800000);
  int64_t us = 1;
  for (const Cost& cost : kCosts) {
    if (cost.function == function) us = cost.us;
  }
  SpinNs(us * 1000);
}

}  // namespace nvml_replay
