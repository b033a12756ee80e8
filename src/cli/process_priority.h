// SPDX-License-Identifier: Apache-2.0
// Keeps our own processes out of the training's way.
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

namespace epochmeter::cli {

// Nice 10 and the lowest best-effort I/O priority. Not SCHED_IDLE: on a fully loaded node that
// would delay ticks by seconds. Failure is fine: then we run as we are.
inline void LowerPriority() {
  errno = 0;
  const int own = ::getpriority(PRIO_PROCESS, 0);
  if (errno == 0 && own < 10) ::setpriority(PRIO_PROCESS, 0, 10);
  constexpr int kWhoProcess = 1, kClassBestEffort = 2, kClassShift = 13, kLowest = 7;
  ::syscall(SYS_ioprio_set, kWhoProcess, 0, (kClassBestEffort << kClassShift) | kLowest);
}

}  // namespace epochmeter::cli
