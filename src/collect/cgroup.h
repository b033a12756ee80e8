// SPDX-License-Identifier: Apache-2.0
// Where the cgroups of a process are: on hosts with cgroup v2, v1 or both (hybrid), inside cgroup
// namespaces and in containers that see a part of the hierarchy through a bind mount. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/source.h"
#include "model/env.h"
#include "model/registry.h"

namespace epochmeter::collect {

struct CgroupLevel {
  std::string folder;  // where its files are
  std::string name;    // as the kernel names it: "/system.slice/job.scope"
  bool operator==(const CgroupLevel&) const = default;
};

// The cgroup of a process for one controller, and what stands above it.
struct CgroupChain {
  bool v2 = false;
  std::vector<CgroupLevel> levels;  // the process's own cgroup first, then its visible ancestors
  // False when the process's own cgroup can't be seen from here: then the first level is the
  // nearest one that can, and holds other processes too.
  bool exact = true;
  // Something above the last level can't be seen, so a limit may in truth be tighter.
  bool ancestors_hidden = false;
  // The last level is the root of the whole host, which has no limits.
  bool top_is_host = false;
  bool operator==(const CgroupChain&) const = default;
};

// `controller` is one of v1: "memory", "cpu", "cpuacct", "cpuset", "blkio"; where v1 does not have
// it, it is looked for in v2. `pid` 0 is the calling process. An error when /proc has no word of it
// or no hierarchy with it is mounted here.
base::Result<CgroupChain> FindCgroup(const model::Env& env, int32_t pid,
                                     std::string_view controller);

// The chain of the run's root process. A process may be moved, so it is looked for again each 10 s,
// until the process has ended: the kernel moves a dead one up.
class JobCgroup {
 public:
  static constexpr int64_t kPeriodNs = 10 * base::kNsPerSecond;
  static base::Result<JobCgroup> Make(const SourceContext& context, std::string_view controller);

  const CgroupChain& chain() const { return chain_; }
  // True when the chain has changed: files must be opened anew.
  bool Refresh(int64_t t_ns);

 private:
  JobCgroup(const model::Env& env, int32_t pid, std::string_view controller)
      : env_(env), pid_(pid), controller_(controller) {}
  model::Env env_;
  int32_t pid_;
  std::string controller_;
  CgroupChain chain_;
  int64_t next_ns_ = 0;
};

// The entity (scope cgroup) named "job", with the paths of its controllers as attributes.
model::EntityId AddJobCgroup(const SourceContext& context);
// The entity of a level above the job's cgroup, named as the kernel names it.
model::EntityId AddCgroupAbove(const SourceContext& context, const CgroupLevel& level);

// A number in a file of a cgroup; nothing when the file is missing, or says "max" or, in v1, a
// number that stands for no limit.
std::optional<double> ReadCgroupLimit(const std::string& folder, const char* file);
// CPUs that cpu.max or the v1 quota of one level grants; nothing without a quota.
std::optional<double> ReadCpuQuota(const CgroupChain& chain, const CgroupLevel& level);

// The least of what `limit_of` gives over the levels, and at which level.
struct TightestLimit {
  double value = 0;
  const CgroupLevel* level = nullptr;
};
template <typename LimitOf>
std::optional<TightestLimit> FindTightest(const CgroupChain& chain, LimitOf limit_of) {
  std::optional<TightestLimit> tightest;
  for (const CgroupLevel& level : chain.levels) {
    const std::optional<double> limit = limit_of(level);
    if (limit && (!tightest || *limit < tightest->value)) tightest = {*limit, &level};
  }
  return tightest;
}

}  // namespace epochmeter::collect
