// SPDX-License-Identifier: Apache-2.0
// What a source sees of the machine, passed in so that tests can give a fixture instead.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace epochmeter::model {

struct Env {
  std::string proc_root = "/proc";
  std::string sys_root = "/sys";
  int64_t (*monotonic_ns)() = &base::MonotonicNs;
  int64_t (*thread_cpu_ns)() = &base::ThreadCpuNs;
};

}  // namespace epochmeter::model
