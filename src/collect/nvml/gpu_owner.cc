// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/gpu_owner.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <memory>

#include "base/file.h"
#include "base/strings.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::string_view kNotShown =
    ", or give the driver's list time: it counts once it shows a process of the training appear";

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

}  // namespace

GpuOwner::GpuOwner(const SourceContext& context, const std::string& host_proc)
    : proc_root_(context.env.proc_root),
      root_pid_(context.job.root_pid),
      excluded_pids_(context.job.excluded_pids),
      initial_(FindInitialProc(proc_root_, host_proc, root_pid_)) {}

// The training may not be there yet, or not any more: then nothing is known.
bool GpuOwner::Scan() {
  if (!initial_.known() && !initial_.proc_is_ours) {
    why_unknown_ = initial_.why_not;
    return false;
  }
  if (!tree_) {
    const bool translated = initial_.known() && initial_.root != proc_root_;
    base::Result<TreeMembers> tree =
        initial_.known() ? TreeMembers::Make(initial_.root, initial_.training_pid,
                                             translated ? std::vector<int32_t>() : excluded_pids_)
                         : TreeMembers::Make(proc_root_, root_pid_, excluded_pids_);
    if (!tree.ok()) {
      why_unknown_ = tree.error().Message();
      return false;
    }
    tree_ = std::move(tree).value();
  }
  const base::Result<> scanned = tree_->Scan();
  if (!scanned.ok()) why_unknown_ = scanned.error().Message();
  return scanned.ok();
}

void GpuOwner::Refresh(std::span<const uint32_t> listed) {
  if (root_pid_ <= 0) {
    why_unknown_ = "no process to follow";
    return;
  }
  why_unknown_.clear();
  if (!Scan()) {
    // Those of the last scan stay the job's: the root has ended, they may end a moment later.
    if (!job_pids_.empty()) why_unknown_.clear();
    return;
  }
  if (!initial_.known() && !shown_) Learn(listed);
  if (!initial_.known() && !shown_) {
    why_unknown_ = initial_.why_not + std::string(kNotShown);
    return;
  }
  // A process that ended between the list and the scan was the job's all the same.
  std::set<uint32_t> pids;
  for (const ProcStat& stat : tree_->members()) pids.insert(static_cast<uint32_t>(stat.key.pid));
  for (const uint32_t pid : listed) {
    if (job_pids_.contains(pid) && !tree_->ReadStat(static_cast<int32_t>(pid))) pids.insert(pid);
  }
  job_pids_ = std::move(pids);
}

void GpuOwner::Learn(std::span<const uint32_t> listed) {
  const bool all_here =
      std::all_of(listed.begin(), listed.end(), [&](uint32_t pid) { return HasGpuOpen(pid); });
  for (const ProcStat& stat : tree_->members()) {
    const auto pid = static_cast<uint32_t>(stat.key.pid);
    if (std::find(listed.begin(), listed.end(), pid) == listed.end()) {
      waiting_.insert(stat.key);
    } else if (all_here && waiting_.contains(stat.key)) {
      shown_ = true;
    }
  }
  if (shown_) waiting_.clear();
}

// Whether a process here has a device node of the driver open; false where that can't be read.
bool GpuOwner::HasGpuOpen(uint32_t pid) const {
  const std::string folder = fmt::format("{}/{}/fd", proc_root_, pid);
  const std::unique_ptr<DIR, CloseDir> dir(::opendir(folder.c_str()));
  if (!dir) return false;
  while (const dirent* entry = ::readdir(dir.get())) {
    std::array<char, PATH_MAX> target{};
    const ssize_t size =
        ::readlinkat(::dirfd(dir.get()), entry->d_name, target.data(), target.size());
    if (size <= 0) continue;
    const std::string_view path(target.data(), static_cast<size_t>(size));
    if (base::StartsWith(path, "/dev/nvidia") || path == "/dev/dxg") return true;
  }
  return false;
}

Owner GpuOwner::Of(uint32_t pid) const {
  if (!why_unknown_.empty()) return Owner::kUnknown;
  return job_pids_.contains(pid) ? Owner::kJob : Owner::kOther;
}

std::string GpuOwner::NameOf(uint32_t pid) const {
  if (!initial_.known() && !shown_) return {};
  const std::string& root = initial_.known() ? initial_.root : proc_root_;
  const base::Result<std::string> comm = base::ReadFile(fmt::format("{}/{}/comm", root, pid), 64);
  return comm.ok() ? base::ToValidUtf8(base::Trim(*comm)) : std::string();
}

}  // namespace epochmeter::collect::nvml
