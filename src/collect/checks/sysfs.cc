// SPDX-License-Identifier: Apache-2.0
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

model::CheckFacts Run(const CheckContext& context) {
  if (NamesIn(context.Path("/sys")).empty()) {
    return {Limited("/sys is not there",
                    "disks, network, energy, NUMA and GPU bus data are read from it",
                    "mount it: `mount -t sysfs sysfs /sys`, or don't hide it from the container")};
  }
  const std::optional<Mount> sys = MountAt(context, "/sys");
  if (!sys || !sys->Has("ro")) return {Ok("/sys can be read")};
  const std::string container = ContainerKind(context);
  const std::string who = container.empty() ? "as in a container" : container + " does so";
  return {Info("/sys is mounted read-only: what is read from it is measured all the same",
               who + "; some folders, such as powercap, may be masked",
               "none needed, nothing here writes to it; power limits and persistence mode are set "
               "on the host")};
}

}  // namespace

const CheckDef kSysfsCheck = {.id = "host.sysfs", .summary = "/sys", .Run = Run};

}  // namespace epochmeter::collect
