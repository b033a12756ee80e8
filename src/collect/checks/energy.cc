// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "base/strings.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

model::CheckFacts Run(const CheckContext& context) {
  const std::string folder = context.Path("/sys/class/powercap");
  int refused = 0, readable = 0;
  for (const std::string& name : NamesIn(folder)) {
    if (!base::StartsWith(name, "intel-rapl:")) continue;
    const int error = ReadErrno(folder + "/" + name + "/energy_uj");
    readable += error == 0 ? 1 : 0;
    refused += error == EACCES || error == EPERM ? 1 : 0;
  }
  if (readable > 0) return {Ok("energy of the CPU can be read (RAPL)")};
  if (refused > 0) {
    return {Limited("energy of the CPU may not be read (RAPL)",
                    "since kernel 5.10 its counters are for root only, as they help side-channel "
                    "attacks",
                    "root: `chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj`, if the machine "
                    "is not shared")};
  }
  return {Info("no energy counter of the CPU (RAPL)",
               "no /sys/class/powercap/intel-rapl*: a virtual machine, a container that masks it, "
               "or another processor")};
}

}  // namespace

const CheckDef kEnergyCheck = {.id = "host.energy", .summary = "energy of the CPU", .Run = Run};

}  // namespace epochmeter::collect
