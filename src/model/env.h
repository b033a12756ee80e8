// SPDX-License-Identifier: Apache-2.0
// What a source sees of the machine, passed in so that tests can give a fixture instead.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "base/clock.h"

namespace epochmeter::model {

// CPU time of all threads of this process.
inline int64_t ProcessCpuNs() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<int64_t>(time.tv_sec) * base::kNsPerSecond + time.tv_nsec;
}

struct Env {
  std::string proc_root = "/proc";
  std::string sys_root = "/sys";
  int64_t (*monotonic_ns)() = &base::MonotonicNs;
  int64_t (*thread_cpu_ns)() = &base::ThreadCpuNs;
  int64_t (*process_cpu_ns)() = &ProcessCpuNs;
};

}  // namespace epochmeter::model
