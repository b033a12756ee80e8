// SPDX-License-Identifier: Apache-2.0
#include "collect/cpu_limit.h"

#include "base/file.h"
#include "collect/cgroup.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

void Lower(CpuLimit& limit, std::optional<double> cores, const std::string& reason) {
  if (!cores || *cores <= 0 || *cores >= limit.cores) return;
  limit.cores = *cores;
  limit.reason = reason;
}

std::optional<double> CpusetOf(const std::string& folder) {
  for (const char* name : {"/cpuset.cpus.effective", "/cpuset.effective_cpus"}) {
    const auto text = base::ReadFile(folder + name);
    if (!text.ok()) continue;
    if (const auto count = CountCpuList(*text)) return *count;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CpuLimit> ReadCpuLimit(const model::Env& env, int32_t pid) {
  const std::string process = env.proc_root + "/" + (pid > 0 ? std::to_string(pid) : "self");
  const auto status = base::ReadFile(process + "/status");
  if (!status.ok()) return std::nullopt;
  constexpr std::string_view kKey = "\nCpus_allowed_list:";
  const size_t at = status->find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const size_t from = at + kKey.size();
  const auto affinity =
      CountCpuList(std::string_view(*status).substr(from, status->find('\n', from) - from));
  if (!affinity) return std::nullopt;
  CpuLimit limit{.cores = static_cast<double>(*affinity), .reason = "affinity"};

  // The root cgroup of a host has no quota file; that of a namespace has.
  if (const auto cpu = FindCgroup(env, pid, "cpu"); cpu.ok()) {
    for (const CgroupLevel& level : cpu->levels) {
      Lower(limit, ReadCpuQuota(*cpu, level), "quota of " + level.name);
    }
    limit.ancestors_hidden = cpu->ancestors_hidden;
  }
  // The effective set of a cgroup is within those of its ancestors; where the controller is not
  // switched on for it, the nearest ancestor's holds.
  if (const auto cpuset = FindCgroup(env, pid, "cpuset"); cpuset.ok()) {
    for (const CgroupLevel& level : cpuset->levels) {
      const auto cpus = CpusetOf(level.folder);
      Lower(limit, cpus, "cpuset");
      if (cpus) break;
    }
  }
  return limit;
}

}  // namespace epochmeter::collect
