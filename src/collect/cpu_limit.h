// SPDX-License-Identifier: Apache-2.0
// How many CPUs a process may use: the least of its affinity, cpuset and cgroup CPU quotas.
#pragma once

#include <optional>
#include <string>

#include "model/env.h"

namespace epochmeter::collect {

struct CpuLimit {
  double cores = 0;
  std::string reason;  // "affinity", "cpuset" or "quota of <cgroup>"
  // A cgroup namespace hides what stands above its root, so the true limit may be lower.
  bool ancestors_hidden = false;
};

// `pid` 0 is the calling process. Affinity is that of the process's main thread. Nothing when not
// even the affinity can be read. Reads cgroup v2, v1 and hybrid hosts.
std::optional<CpuLimit> ReadCpuLimit(const model::Env& env, int32_t pid);

}  // namespace epochmeter::collect
