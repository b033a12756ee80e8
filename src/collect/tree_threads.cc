// SPDX-License-Identifier: Apache-2.0
#include "collect/tree_threads.h"

#include <fmt/format.h>

#include <charconv>

#include "collect/proc_dir.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

bool TreeThreads::Read(int proc_fd, const std::vector<ProcStat>& members) {
  size_t threads = 0;
  for (const ProcStat& stat : members) threads += stat.threads;
  if (threads > kMostThreads) return false;
  Counts voluntary, involuntary, wait_ns;
  waits_.clear();
  for (const ProcStat& stat : members) ReadProcess(proc_fd, stat, voluntary, involuntary);
  for (const Wait& wait : waits_) wait_ns[wait.thread] = wait.ns;
  voluntary_.Update(std::move(voluntary));
  involuntary_.Update(std::move(involuntary));
  wait_ns_.Update(std::move(wait_ns));
  return true;
}

// A thread id with the start of its process is unique enough for the few seconds between scans.
// schedstat reads "ran_ns WAITED_NS slices".
void TreeThreads::ReadProcess(int proc_fd, const ProcStat& stat, Counts& voluntary,
                              Counts& involuntary) {
  const std::string folder = fmt::format("{}/task", stat.key.pid);
  const Dir dir = OpenDirAt(proc_fd, folder.c_str());
  if (!dir) return;
  while (const dirent* entry = ::readdir(dir.get())) {
    ProcKey key{.pid = 0, .start_ticks = stat.key.start_ticks};
    const std::string_view name = entry->d_name;
    if (std::from_chars(name.data(), name.data() + name.size(), key.pid).ec != std::errc()) {
      continue;
    }
    if (ReadAt(proc_fd, fmt::format("{}/{}/status", folder, name).c_str(), buffer_) == 0) {
      const auto waits = NumberOfKey(buffer_, "voluntary_ctxt_switches:");
      const auto taken = NumberOfKey(buffer_, "nonvoluntary_ctxt_switches:");
      if (waits) voluntary[key] = *waits;
      if (taken) involuntary[key] = *taken;
    }
    if (ReadAt(proc_fd, fmt::format("{}/{}/schedstat", folder, name).c_str(), buffer_) != 0) {
      continue;
    }
    std::string_view text = buffer_;
    const auto ran_ns = NextUint(text);
    const auto waited_ns = NextUint(text);
    if (ran_ns && waited_ns) {
      waits_.push_back({.thread = key, .pid = stat.key.pid, .ns = *waited_ns});
    }
  }
}

}  // namespace epochmeter::collect
