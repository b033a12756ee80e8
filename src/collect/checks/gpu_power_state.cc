// SPDX-License-Identifier: Apache-2.0
// GPUs of laptops sleep when nobody uses them. Read from sysfs, which wakes nothing.
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

model::CheckFacts Run(const CheckContext& context) {
  model::CheckFacts facts;
  for (const std::string& device : NvidiaPciDevices(context)) {
    const std::string folder = context.Path("/sys/bus/pci/devices/") + device + "/power/";
    const auto status = ReadTrimmed(folder + "runtime_status");
    const auto control = ReadTrimmed(folder + "control");
    if (status == "suspended") {
      facts.push_back(Info("the GPU at " + device + " sleeps",
                           "its runtime power management is on and nothing uses it",
                           "nothing to fix: it is measured once the training has woken it"));
    } else if (control == "auto") {
      facts.push_back(Info("the GPU at " + device + " may go to sleep when idle",
                           "power/control is auto; an open recorder holds it awake"));
    }
  }
  return facts;
}

}  // namespace

const CheckDef kGpuPowerStateCheck = {
    .id = "gpu.power_state", .summary = "GPUs that sleep", .Run = Run};

}  // namespace epochmeter::collect
