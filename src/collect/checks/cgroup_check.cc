// SPDX-License-Identifier: Apache-2.0
// Which cgroups hold the job, and the tightest limits on its CPUs and memory.
#include <fmt/format.h>

#include "base/strings.h"
#include "collect/cgroup.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"
#include "collect/cpu_limit.h"

namespace epochmeter::collect {
namespace {

constexpr const char* kSwitchToV2 =
    "boot with systemd.unified_cgroup_hierarchy=1 on the kernel command line, for cgroup v2";

struct Hierarchies {
  bool v1 = false, v2 = false;
};

Hierarchies Mounted(const CheckContext& context) {
  Hierarchies found;
  for (const Mount& mount : ReadMounts(context)) {
    found.v1 = found.v1 || mount.type == "cgroup";
    found.v2 = found.v2 || mount.type == "cgroup2";
  }
  return found;
}

model::CheckFact Version(const CheckContext& context) {
  const Hierarchies mounted = Mounted(context);
  if (!mounted.v1 && !mounted.v2) {
    return Limited("no cgroups are mounted here", "limits, throttling and oom kills can't be seen",
                   "mount them: /sys/fs/cgroup; in a container don't hide it");
  }
  if (!mounted.v1) return Ok("cgroup v2");
  return Limited(mounted.v2 ? "cgroup v1 and v2 (hybrid)" : "cgroup v1",
                 "v1 has no pressure stalls per job; CPU, memory and oom kills are read all the "
                 "same",
                 kSwitchToV2);
}

std::string Place(const CgroupChain& chain) {
  std::string text = chain.levels.empty() ? "?" : chain.levels.front().name;
  if (!chain.exact) text += " (the nearest that can be seen; it holds other processes too)";
  if (chain.ancestors_hidden) text += "; a cgroup above it is hidden, its limits may be tighter";
  return text;
}

model::CheckFact Memory(const CheckContext& context) {
  const base::Result<CgroupChain> chain = FindCgroup(context.env(), context.pid, "memory");
  if (!chain.ok()) {
    return Limited("the memory cgroup can't be found", chain.error().Message(),
                   "mount /sys/fs/cgroup here");
  }
  const char* file = chain->v2 ? "memory.max" : "memory.limit_in_bytes";
  const auto limit = FindTightest(
      *chain, [file](const CgroupLevel& level) { return ReadCgroupLimit(level.folder, file); });
  const std::string place = "cgroup " + Place(*chain);
  if (!limit) return Ok("no memory limit is set", place);
  return Ok("memory is limited to " + base::FormatBytes(limit->value),
            "by " + limit->level->name + "; " + place);
}

model::CheckFact Cpu(const CheckContext& context) {
  const std::optional<CpuLimit> limit = ReadCpuLimit(context.env(), context.pid);
  if (!limit) return Info("the number of usable CPUs is not known", "its affinity can't be read");
  return Ok(
      fmt::format("{:g} CPUs may be used", limit->cores),
      "by " + limit->reason + (limit->ancestors_hidden ? "; a hidden limit may be tighter" : ""));
}

model::CheckFacts Run(const CheckContext& context) {
  return {Version(context), Memory(context), Cpu(context)};
}

}  // namespace

const CheckDef kCgroupCheck = {
    .id = "host.cgroup", .summary = "cgroups and their limits", .Run = Run};

}  // namespace epochmeter::collect
