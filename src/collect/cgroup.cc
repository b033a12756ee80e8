// SPDX-License-Identifier: Apache-2.0
#include "collect/cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>

#include "base/file.h"
#include "base/strings.h"
#include "collect/proc_file.h"
#include "collect/proc_pid.h"

namespace epochmeter::collect {

namespace {

// One mount of a hierarchy, and which of its cgroups is at the mount point.
struct Mount {
  std::string root;
  std::string point;
};

bool Exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

bool HasItem(std::string_view list, std::string_view item) {
  const auto items = base::Split(list, ',');
  return std::find(items.begin(), items.end(), item) != items.end();
}

// mountinfo writes a space as \040.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' && i + 3 < text.size()
                          ? base::ParseUint(text.substr(i + 1, 3), 8)
                          : std::nullopt;
    plain += code && *code < 128 ? static_cast<char>(*code) : text[i];
    if (code && *code < 128) i += 3;
  }
  return plain;
}

// A line reads: id parent major:minor ROOT POINT options [optional fields] - TYPE device SUPER.
// `controller` is empty for cgroup v2. A hierarchy may be mounted several times.
std::vector<Mount> FindMounts(std::string_view mountinfo, std::string_view controller) {
  std::vector<Mount> mounts;
  std::string_view line;
  while (NextLine(mountinfo, line)) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto left = base::SplitWhitespace(line.substr(0, dash));
    const auto right = base::SplitWhitespace(line.substr(dash + 3));
    if (left.size() < 5 || right.size() < 3) continue;
    const bool found = controller.empty() ? right[0] == "cgroup2"
                                          : right[0] == "cgroup" && HasItem(right[2], controller);
    if (found) mounts.push_back({.root = Unescape(left[3]), .point = Unescape(left[4])});
  }
  return mounts;
}

// A line reads: id:controllers:path. `controller` is empty for cgroup v2. The path of a dead
// process whose cgroup is gone ends in " (deleted)".
std::optional<std::string> FindPath(std::string_view cgroups, std::string_view controller) {
  std::string_view line;
  while (NextLine(cgroups, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool found = controller.empty() ? controllers.empty() : HasItem(controllers, controller);
    if (!found) continue;
    std::string_view path = line.substr(second + 1);
    constexpr std::string_view kDeleted = " (deleted)";
    if (base::EndsWith(path, kDeleted)) path.remove_suffix(kDeleted.size());
    return std::string(path);
  }
  return std::nullopt;
}

// `path` below the mount, empty or from its slash on; nothing when the mount does not lead there.
// Inside a namespace a path that leads out of it begins with "/..".
std::optional<std::string> Below(const Mount& mount, std::string path) {
  if (!base::StartsWith(path, "/")) return std::nullopt;
  if (mount.root != "/") {
    const bool inside = base::StartsWith(path, mount.root) &&
                        (path.size() == mount.root.size() || path[mount.root.size()] == '/');
    if (!inside) return std::nullopt;
    path.erase(0, mount.root.size());
  }
  if (path.find("/..") != std::string::npos) return std::nullopt;
  return path == "/" ? "" : path;
}

// cgroup.procs names the process, in the numbers of the reader's pid namespace.
bool HoldsProcess(const std::string& folder, int32_t pid) {
  const auto text = base::ReadFile(folder + "/cgroup.procs", size_t{16} << 20);
  if (!text.ok()) return false;
  const int32_t wanted = pid > 0 ? pid : static_cast<int32_t>(::getpid());
  std::string_view rest = *text;
  std::string_view line;
  while (NextLine(rest, line)) {
    if (base::ParseInt(line) == wanted) return true;
  }
  return false;
}

// By the number of the namespace that the kernel makes first. Kernels without the link have none.
bool InInitialNamespace(const model::Env& env) {
  char text[64];
  const std::string link = env.proc_root + "/self/ns/cgroup";
  const ssize_t size = ::readlink(link.c_str(), text, sizeof text);
  if (size < 0) return errno == ENOENT;
  return std::string_view(text, static_cast<size_t>(size)) == "cgroup:[4026531835]";
}

std::string PointOf(const model::Env& env, const Mount& mount) {
  return base::StartsWith(mount.point, "/sys/") ? env.sys_root + mount.point.substr(4)
                                                : mount.point;
}

// The chain as one mount shows it. A path that does not exist below it (in a container) leaves the
// mount point as the best that can be seen.
CgroupChain ChainAt(const model::Env& env, const Mount& mount, const std::string& path,
                    int32_t pid) {
  CgroupChain chain;
  const std::string point = PointOf(env, mount);
  std::optional<std::string> below = Below(mount, path);
  if (below && !Exists(point + *below)) below.reset();
  chain.exact = below.has_value() || HoldsProcess(point, pid);
  std::string rest = below.value_or("");
  const std::string above = mount.root == "/" ? "" : mount.root;
  for (; !rest.empty(); rest.resize(rest.rfind('/'))) {
    chain.levels.push_back({.folder = point + rest, .name = above + rest});
  }
  chain.levels.push_back({.folder = point, .name = above.empty() ? "/" : above});
  return chain;
}

// Only a cgroup that is not the host's root has these files.
bool HasRootInside(const std::string& point) {
  return Exists(point + "/cgroup.events") || Exists(point + "/cpu.max");
}

std::optional<CgroupChain> FindIn(const model::Env& env, int32_t pid, std::string_view mountinfo,
                                  std::string_view cgroups, std::string_view controller) {
  const auto path = FindPath(cgroups, controller);
  if (!path) return std::nullopt;
  std::optional<CgroupChain> best;
  for (const Mount& mount : FindMounts(mountinfo, controller)) {
    CgroupChain chain = ChainAt(env, mount, *path, pid);
    chain.v2 = controller.empty();
    const std::string& top = chain.levels.back().folder;
    const bool whole = mount.root == "/" && InInitialNamespace(env);
    chain.ancestors_hidden = mount.root != "/" || (!whole && (!chain.v2 || HasRootInside(top)));
    if (chain.v2 && HasRootInside(top)) chain.ancestors_hidden = true;
    chain.top_is_host = !chain.ancestors_hidden;
    const auto rank = [](const CgroupChain& c) { return std::pair(c.exact, c.levels.size()); };
    if (!best || rank(chain) > rank(*best)) best = std::move(chain);
  }
  return best;
}

// cgroup v2 alone has no controller to name.
std::string ForController(std::string_view controller) {
  return controller.empty() ? " in cgroup v2" : " for " + std::string(controller);
}

}  // namespace

base::Result<CgroupChain> FindCgroup(const model::Env& env, int32_t pid,
                                     std::string_view controller) {
  const std::string process = env.proc_root + "/" + (pid > 0 ? std::to_string(pid) : "self");
  EPM_ASSIGN(const std::string cgroups, base::ReadFile(process + "/cgroup"));
  EPM_ASSIGN(const std::string mounts, base::ReadFile(env.proc_root + "/self/mountinfo"));
  for (const std::string_view wanted : {controller, std::string_view()}) {
    if (auto chain = FindIn(env, pid, mounts, cgroups, wanted)) return *std::move(chain);
  }
  return base::Error{.what = "the job has no cgroup" + ForController(controller),
                     .where = process + "/cgroup",
                     .why = "the hierarchy is not mounted where the recorder runs",
                     .what_to_do = "mount /sys/fs/cgroup into the container, read-only is enough"};
}

base::Result<JobCgroup> JobCgroup::Make(const SourceContext& context, std::string_view controller) {
  JobCgroup job(context.env, context.job.root_pid, controller);
  EPM_ASSIGN(job.chain_, FindCgroup(context.env, job.pid_, controller));
  if (job.chain_.top_is_host && job.chain_.levels.size() == 1) {
    return base::Error{.what = "the job has no cgroup of its own" + ForController(controller),
                       .where = job.chain_.levels.front().folder,
                       .why = "it is in the root cgroup of the host",
                       .what_to_do = "the host's own figures stand for it"};
  }
  return job;
}

bool JobCgroup::Refresh(int64_t t_ns) {
  if (t_ns < next_ns_) return false;
  next_ns_ = t_ns + kPeriodNs;
  auto chain = FindCgroup(env_, pid_, controller_);
  if (!chain.ok() || *chain == chain_) return false;
  const auto stat =
      base::ReadFile(env_.proc_root + "/" + (pid_ > 0 ? std::to_string(pid_) : "self") + "/stat");
  const auto parsed = stat.ok() ? ParseProcStat(*stat) : std::nullopt;
  if (!parsed || parsed->ended()) return false;
  chain_ = std::move(chain).value();
  return true;
}

model::EntityId AddJobCgroup(const SourceContext& context) {
  model::Labels attributes;
  bool exact = true, hidden = false;
  for (const char* controller : {"memory", "cpu", "blkio"}) {
    const auto chain = FindCgroup(context.env, context.job.root_pid, controller);
    if (!chain.ok()) continue;
    exact = exact && chain->exact;
    hidden = hidden || chain->ancestors_hidden;
    attributes.emplace_back(std::string(controller) + "_path", chain->levels.front().name);
    attributes.emplace_back(std::string(controller) + "_version", chain->v2 ? "2" : "1");
  }
  attributes.emplace_back("own_cgroup_visible", exact ? "yes" : "no");
  attributes.emplace_back("ancestors_hidden", hidden ? "yes" : "no");
  return context.registry.AddEntity({.id = 0,
                                     .scope = model::Scope::kCgroup,
                                     .name = "job",
                                     .labels = {{"cgroup", "job"}},
                                     .attributes = std::move(attributes)});
}

model::EntityId AddCgroupAbove(const SourceContext& context, const CgroupLevel& level) {
  return context.registry.AddEntity({.id = 0,
                                     .scope = model::Scope::kCgroup,
                                     .name = level.name,
                                     .labels = {{"cgroup", level.name}},
                                     .attributes = {{"above", "job"}}});
}

std::optional<double> ReadCgroupLimit(const std::string& folder, const char* file) {
  const auto text = base::ReadFile(folder + "/" + file, 4096);
  if (!text.ok()) return std::nullopt;
  const auto value = base::ParseUint(base::Trim(*text));
  // v1 writes "no limit" as the largest number of whole pages.
  constexpr uint64_t kNoLimit = uint64_t{1} << 62;
  if (!value || *value >= kNoLimit) return std::nullopt;
  return static_cast<double>(*value);
}

// cpu.max reads "QUOTA PERIOD" in us, or "max PERIOD"; v1 has a file each, with -1 for no quota.
std::optional<double> ReadCpuQuota(const CgroupChain& chain, const CgroupLevel& level) {
  std::string text;
  for (const char* file :
       chain.v2 ? std::initializer_list<const char*>{"/cpu.max"}
                : std::initializer_list<const char*>{"/cpu.cfs_quota_us", "/cpu.cfs_period_us"}) {
    const auto part = base::ReadFile(level.folder + file, 4096);
    if (!part.ok()) return std::nullopt;
    text += *part + " ";
  }
  const auto words = base::SplitWhitespace(text);
  if (words.size() < 2) return std::nullopt;
  const auto quota = base::ParseDouble(words[0]);
  const auto period = base::ParseDouble(words[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

}  // namespace epochmeter::collect
