// SPDX-License-Identifier: Apache-2.0
#include "collect/tree_members.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/strings.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

constexpr std::string_view kMarker = "EPOCHMETER_RUN_ID";
constexpr size_t kEnvironLimit = size_t{256} << 10;
// Each outsider is read again once in so many scans, in case its inode ever misleads.
constexpr uint64_t kRecheckScans = 64;

std::string ReadEnviron(int proc_fd, int32_t pid) {
  std::string text;
  const std::string name = fmt::format("{}/environ", pid);
  return ReadAt(proc_fd, name.c_str(), text, kEnvironLimit) == 0 ? text : std::string();
}

std::string ReadLink(int dir_fd, const std::string& name) {
  char target[4096];
  const ssize_t size = ::readlinkat(dir_fd, name.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : std::string();
}

}  // namespace

base::Result<TreeMembers> TreeMembers::Make(const std::string& proc_root, int32_t root_pid,
                                            const std::vector<int32_t>& excluded) {
  TreeMembers tree;
  tree.dir_.reset(::opendir(proc_root.c_str()));
  if (!tree.dir_) return base::SystemError("cannot list processes", proc_root, errno);
  const auto root = tree.ReadStat(root_pid);
  if (!root) {
    return base::Error{
        .what = fmt::format("cannot see process {}", root_pid),
        .where = proc_root,
        .why =
            "it has ended, belongs to another user under hidepid, or is in another pid namespace",
        .what_to_do = "check the pid"};
  }
  tree.root_ = root->key;
  const std::string root_environ = ReadEnviron(tree.proc_fd(), root_pid);
  tree.run_id_ = EnvironValue(root_environ, kMarker).value_or("");
  tree.excluded_pids_.insert(excluded.begin(), excluded.end());
  char self[32];
  const ssize_t size = ::readlinkat(tree.proc_fd(), "self", self, sizeof self);
  if (size > 0) {
    const auto pid = base::ParseInt({self, static_cast<size_t>(size)});
    if (pid) tree.excluded_pids_.insert(static_cast<int32_t>(*pid));
  }
  tree.excluded_pids_.erase(root_pid);
  tree.own_program_ = ReadLink(tree.proc_fd(), "self/exe");
  if (tree.IsOurs(root->parent)) tree.reaper_pid_ = root->parent;
  return tree;
}

bool TreeMembers::IsOurs(int32_t pid) const {
  return !own_program_.empty() && ReadLink(proc_fd(), fmt::format("{}/exe", pid)) == own_program_;
}

// An orphan of the training, of which the kernel made our launcher the parent.
bool TreeMembers::IsHandedOver(const ProcStat& stat) const {
  return reaper_pid_ != 0 && stat.parent == reaper_pid_ &&
         stat.key.start_ticks >= root_.start_ticks && !IsOurs(stat.key.pid);
}

std::set<int32_t> TreeMembers::ReadCgroup() const {
  std::set<int32_t> pids;
  const auto text = base::ReadFile(cgroup_file_, size_t{1} << 20);
  if (!text.ok()) return pids;
  std::string_view rest = *text;
  while (const auto pid = NextUint(rest)) {
    if (*pid > 0 && *pid <= INT32_MAX) pids.insert(static_cast<int32_t>(*pid));
  }
  return pids;
}

void TreeMembers::FollowCgroup(const std::string& procs_file) {
  cgroup_file_ = procs_file;
  const std::set<int32_t> pids = ReadCgroup();
  const bool own =
      pids.contains(root_.pid) && std::all_of(pids.begin(), pids.end(), [this](int32_t pid) {
        return member_pids_.contains(pid) || excluded_pids_.contains(pid) || IsOurs(pid);
      });
  if (!own) cgroup_file_.clear();
}

int TreeMembers::ReadKept(base::UniqueFd& fd, const char* name, std::string& text) const {
  if (!fd.valid()) fd = base::UniqueFd(::openat(proc_fd(), name, O_RDONLY | O_CLOEXEC));
  const int error = fd.valid() ? ReadOnce(fd.get(), text) : errno;
  if (error != 0) fd.Reset();
  return error;
}

std::optional<ProcStat> TreeMembers::ReadStat(int32_t pid) {
  char name[32];
  *fmt::format_to_n(name, sizeof name - 1, "{}/stat", pid).out = '\0';
  const auto kept = kept_.find(pid);
  const bool read = kept != kept_.end() && ReadKept(kept->second.stat, name, buffer_) == 0;
  if (!read && ReadAt(proc_fd(), name, buffer_) != 0) return std::nullopt;
  return ParseProcStat(buffer_);
}

int TreeMembers::ReadIo(int32_t pid, std::string& text) {
  char name[32];
  *fmt::format_to_n(name, sizeof name - 1, "{}/io", pid).out = '\0';
  const auto kept = kept_.find(pid);
  return kept != kept_.end() ? ReadKept(kept->second.io, name, text)
                             : ReadAt(proc_fd(), name, text);
}

void TreeMembers::KeepOpen(const std::vector<Candidate>& candidates) {
  constexpr size_t kMostKept = 200;
  std::erase_if(kept_, [this](const auto& item) { return !member_pids_.contains(item.first); });
  for (const Candidate& candidate : candidates) {
    const ProcStat& stat = candidate.stat;
    if (!member_pids_.contains(stat.key.pid) || stat.ended() || kept_.size() >= kMostKept) continue;
    kept_.try_emplace(stat.key.pid, Kept{.inode = candidate.inode, .stat = {}, .io = {}});
  }
}

bool TreeMembers::IsKnownOutsider(int32_t pid, uint64_t inode) {
  const auto found = outsiders_.find(pid);
  if (found == outsiders_.end()) return false;
  const bool recheck = static_cast<uint64_t>(pid) % kRecheckScans == scan_ % kRecheckScans;
  if (found->second.inode != inode || recheck) return false;
  found->second.seen_in_scan = scan_;
  return true;
}

void TreeMembers::Take(Candidate& candidate) {
  const ProcStat& stat = candidate.stat;
  candidate.decided = true;
  member_pids_.insert(stat.key.pid);
  members_.push_back(stat);
  if (stat.session == stat.key.pid) founded_groups_.insert(stat.session);
  if (stat.group == stat.key.pid) founded_groups_.insert(stat.group);
}

bool TreeMembers::TakeIfExcluded(Candidate& candidate) {
  const ProcStat& stat = candidate.stat;
  if (stat.key == root_) return false;
  const auto parent = outsiders_.find(stat.parent);
  const bool by_parent = parent != outsiders_.end() && parent->second.verdict == Verdict::kExcluded;
  if (!by_parent && !excluded_pids_.contains(stat.parent) &&
      !excluded_pids_.contains(stat.key.pid)) {
    return false;
  }
  candidate.decided = true;
  outsiders_[stat.key.pid] = {
      .inode = candidate.inode, .verdict = Verdict::kExcluded, .seen_in_scan = scan_};
  return true;
}

bool TreeMembers::TakeIfMember(Candidate& candidate) {
  const ProcStat& stat = candidate.stat;
  const bool member =
      stat.key == root_ || before_.contains(stat.key) || member_pids_.contains(stat.parent) ||
      founded_groups_.contains(stat.session) || founded_groups_.contains(stat.group) ||
      IsHandedOver(stat) || (cgroup_pids_.contains(stat.key.pid) && !IsOurs(stat.key.pid));
  if (member) Take(candidate);
  return member;
}

// Decides candidates by those decided before, until nothing changes: a child may be listed before
// its parent. Exclusion goes first, because it wins over a shared session.
void TreeMembers::Spread(std::vector<Candidate>& candidates) {
  for (const auto take : {&TreeMembers::TakeIfExcluded, &TreeMembers::TakeIfMember}) {
    for (bool changed = true; changed;) {
      changed = false;
      for (Candidate& candidate : candidates) {
        if (!candidate.decided) changed |= (this->*take)(candidate);
      }
    }
  }
}

// A process that is older than the root can't descend from it.
bool TreeMembers::IsMarked(const ProcStat& stat) {
  if (run_id_.empty() || stat.key.start_ticks < root_.start_ticks || stat.ended()) return false;
  const std::string text = ReadEnviron(proc_fd(), stat.key.pid);
  return EnvironValue(text, kMarker) == run_id_;
}

// The kernel does not give a pid away while it names a session or group in use, so a founded group
// can be told by its number as long as a member is in it.
void TreeMembers::ForgetOldGroups() {
  std::set<int32_t> in_use;
  for (const ProcStat& stat : members_) {
    for (const int32_t id : {stat.session, stat.group}) {
      if (founded_groups_.contains(id)) in_use.insert(id);
    }
  }
  founded_groups_ = std::move(in_use);
}

void TreeMembers::Refresh() {
  std::erase_if(members_, [this](ProcStat& stat) {
    const auto now = ReadStat(stat.key.pid);
    if (!now || now->key != stat.key) {
      member_pids_.erase(stat.key.pid);
      return true;
    }
    stat = *now;
    return false;
  });
}

base::Result<> TreeMembers::Scan() {
  ++scan_;
  members_.clear();
  member_pids_.clear();
  if (!cgroup_file_.empty()) cgroup_pids_ = ReadCgroup();
  std::vector<Candidate> candidates;
  ::rewinddir(dir_.get());
  errno = 0;
  while (const dirent* entry = ::readdir(dir_.get())) {
    const std::string_view name = entry->d_name;
    if (name.front() < '1' || name.front() > '9') continue;
    const auto pid = base::ParseInt(name);
    if (!pid || *pid > INT32_MAX) continue;
    if (IsKnownOutsider(static_cast<int32_t>(*pid), entry->d_ino)) continue;
    const auto kept = kept_.find(static_cast<int32_t>(*pid));
    if (kept != kept_.end() && kept->second.inode != entry->d_ino) kept_.erase(kept);
    if (const auto stat = ReadStat(static_cast<int32_t>(*pid))) {
      candidates.push_back({.stat = *stat, .inode = entry->d_ino, .decided = false});
    }
    errno = 0;
  }
  if (errno != 0) return base::SystemError("cannot list processes", "/proc", errno);

  // A new process with the number of a founded group: the group has ended and its pid was free.
  for (const Candidate& candidate : candidates) {
    if (!before_.contains(candidate.stat.key)) founded_groups_.erase(candidate.stat.key.pid);
  }
  Spread(candidates);
  for (Candidate& candidate : candidates) {
    if (candidate.decided) continue;
    if (!IsMarked(candidate.stat)) continue;
    Take(candidate);
    Spread(candidates);
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.decided) continue;
    outsiders_[candidate.stat.key.pid] = {
        .inode = candidate.inode, .verdict = Verdict::kOutside, .seen_in_scan = scan_};
  }
  std::erase_if(outsiders_, [&](const auto& item) { return item.second.seen_in_scan != scan_; });
  before_.clear();
  for (const ProcStat& stat : members_) before_.insert(stat.key);
  std::sort(members_.begin(), members_.end(),
            [](const ProcStat& a, const ProcStat& b) { return a.key < b.key; });
  ForgetOldGroups();
  KeepOpen(candidates);
  return {};
}

}  // namespace epochmeter::collect
