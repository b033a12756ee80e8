// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>

#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

model::CheckFacts Run(const CheckContext& context) {
  return {PressureFact(ReadErrno(context.Path("/proc/pressure/cpu")))};
}

}  // namespace

model::CheckFact PressureFact(int errno_value) {
  const char* what = "no pressure stall information (PSI)";
  switch (errno_value) {
    case 0:
      return Ok("the kernel counts pressure stalls (PSI)");
    case EOPNOTSUPP:
      return Limited(what, "the kernel was built with it, but it is off (EOPNOTSUPP)",
                     "boot with psi=1 on the kernel command line");
    case EACCES:
    case EPERM:
      return Limited(what, "/proc/pressure may not be read here",
                     "let the container read it: it is masked by its security profile");
    case ENOENT:
      return Limited(what, "the kernel has no /proc/pressure: older than 4.20 or built without PSI",
                     "use a kernel with CONFIG_PSI=y, and boot it with psi=1");
    default:
      return Limited(what, std::string("/proc/pressure/cpu: ") + std::strerror(errno_value),
                     "boot with psi=1 on the kernel command line");
  }
}

const CheckDef kPressureCheck = {
    .id = "host.pressure", .summary = "pressure stall information", .Run = Run};

}  // namespace epochmeter::collect
