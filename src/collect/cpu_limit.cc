// SPDX-License-Identifier: Apache-2.0
#include "collect/cpu_limit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

// Where a cgroup hierarchy is mounted, and which of its cgroups is at the mount point.
struct Mount {
  std::string root;
  std::string point;
};

bool HasItem(std::string_view list, std::string_view item) {
  const auto items = base::Split(list, ',');
  return std::find(items.begin(), items.end(), item) != items.end();
}

// A line reads: id parent major:minor ROOT POINT options [optional fields] - TYPE device SUPER.
// `controller` is empty for cgroup v2.
std::optional<Mount> FindMount(std::string_view mountinfo, std::string_view controller) {
  std::string_view line;
  while (NextLine(mountinfo, line)) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto left = base::SplitWhitespace(line.substr(0, dash));
    const auto right = base::SplitWhitespace(line.substr(dash + 3));
    if (left.size() < 5 || right.size() < 3) continue;
    const bool found = controller.empty() ? right[0] == "cgroup2"
                                          : right[0] == "cgroup" && HasItem(right[2], controller);
    if (found) return Mount{.root = std::string(left[3]), .point = std::string(left[4])};
  }
  return std::nullopt;
}

// A line reads: id:controllers:path. `controller` is empty for cgroup v2.
std::optional<std::string> FindPath(std::string_view cgroups, std::string_view controller) {
  std::string_view line;
  while (NextLine(cgroups, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool found = controller.empty() ? controllers.empty() : HasItem(controllers, controller);
    if (found) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// The folders of a cgroup and its visible ancestors, leaf first. In a container the path may not
// exist below the mount point; then the mount point itself is the best that can be seen.
std::vector<std::string> Folders(const model::Env& env, const Mount& mount, std::string path) {
  std::string point = mount.point;
  if (base::StartsWith(point, "/sys/")) point = env.sys_root + point.substr(4);
  if (mount.root != "/" && base::StartsWith(path, mount.root)) path.erase(0, mount.root.size());
  std::vector<std::string> folders;
  if (path.find("..") == std::string::npos) {
    while (path.size() > 1) {
      folders.push_back(point + path);
      path.resize(path.rfind('/'));
    }
  }
  folders.push_back(point);
  return folders;
}

// cpu.max reads "QUOTA PERIOD" in us, or "max PERIOD".
std::optional<double> QuotaV2(const std::string& folder) {
  const auto text = base::ReadFile(folder + "/cpu.max");
  if (!text.ok()) return std::nullopt;
  const auto words = base::SplitWhitespace(*text);
  if (words.size() < 2) return std::nullopt;
  const auto quota = base::ParseDouble(words[0]);
  const auto period = base::ParseDouble(words[1]);
  if (!quota || !period || *period <= 0) return std::nullopt;
  return *quota / *period;
}

std::optional<double> QuotaV1(const std::string& folder) {
  const auto quota_text = base::ReadFile(folder + "/cpu.cfs_quota_us");
  const auto period_text = base::ReadFile(folder + "/cpu.cfs_period_us");
  if (!quota_text.ok() || !period_text.ok()) return std::nullopt;
  const auto quota = base::ParseDouble(base::Trim(*quota_text));
  const auto period = base::ParseDouble(base::Trim(*period_text));
  if (!quota || !period || *quota < 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

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

  const auto cgroups = base::ReadFile(process + "/cgroup");
  const auto mounts = base::ReadFile(env.proc_root + "/self/mountinfo");
  if (!cgroups.ok() || !mounts.ok()) return limit;
  for (const std::string_view controller : {"", "cpu", "cpuset"}) {
    const auto mount = FindMount(*mounts, controller);
    const auto path = FindPath(*cgroups, controller);
    if (!mount || !path) continue;
    // The root cgroup of a host has no cpu.max or quota file; that of a namespace has.
    for (const std::string& folder : Folders(env, *mount, *path)) {
      const auto quota = controller == "cpu" ? QuotaV1(folder) : QuotaV2(folder);
      Lower(limit, quota, "quota of " + folder);
    }
    if (controller != "cpu") Lower(limit, CpusetOf(Folders(env, *mount, *path)[0]), "cpuset");
    const bool top_has_quota = base::ReadFile(mount->point + "/cpu.max").ok();
    limit.ancestors_hidden |= mount->root != "/" || top_has_quota;
  }
  return limit;
}

}  // namespace epochmeter::collect
