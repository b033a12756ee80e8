// SPDX-License-Identifier: Apache-2.0
// Whether the machine's NVIDIA GPUs are powered down by runtime power management, as on laptops.
#pragma once

#include <string>

namespace epochmeter::collect::nvml {

// True when sysfs lists at least one such GPU and all of them are suspended. Opening one would wake
// it, and an open handle would keep it awake.
bool AllGpusAsleep(const std::string& sys_root);

}  // namespace epochmeter::collect::nvml
