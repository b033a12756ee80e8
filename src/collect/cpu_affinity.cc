// SPDX-License-Identifier: Apache-2.0
#include "collect/cpu_affinity.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "collect/proc_dir.h"
#include "collect/proc_file.h"
#include "collect/proc_pid.h"

namespace epochmeter::collect {

namespace {

constexpr uint64_t kMostCpus = 1 << 16;
constexpr size_t kMostThreads = 512;  // each costs two small reads, once a minute
constexpr size_t kSmallFile = size_t{64} << 10;

struct ProcessView {
  CpuSet cpus;
  std::vector<int32_t> children;
  bool wrapper = false;
  bool readable = false;
};

// Reads each thread, of which every one has its own mask and its own children.
ProcessView LookAt(const model::Env& env, int32_t pid, size_t& threads) {
  ProcessView view;
  const std::string process = fmt::format("{}/{}", env.proc_root, pid);
  const auto comm = base::ReadFile(process + "/comm", kSmallFile);
  view.wrapper = comm.ok() && IsWrapperProgram(base::Trim(*comm));
  const Dir dir(::opendir((process + "/task").c_str()));
  while (dir != nullptr && threads < kMostThreads) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    if (!base::ParseUint(entry->d_name)) continue;
    ++threads;
    const std::string thread = process + "/task/" + entry->d_name;
    const auto status = base::ReadFile(thread + "/status", kSmallFile);
    const auto list = status.ok() ? TextOfKey(*status, "Cpus_allowed_list:") : std::nullopt;
    const auto cpus = list ? ParseCpuList(*list) : std::nullopt;
    if (cpus) view.cpus.insert(cpus->begin(), cpus->end());
    view.readable = view.readable || cpus.has_value();
    const auto children = base::ReadFile(thread + "/children", kSmallFile);
    if (!children.ok()) continue;
    std::string_view rest = *children;
    while (const auto child = NextUint(rest)) {
      view.children.push_back(static_cast<int32_t>(*child));
    }
  }
  return view;
}

}  // namespace

std::optional<CpuSet> ParseCpuList(std::string_view text) {
  const auto ranges = ParseCpuRanges(text, kMostCpus);
  if (!ranges) return std::nullopt;
  CpuSet cpus;
  for (const CpuRange& range : *ranges) {
    for (uint64_t cpu = range.first; cpu <= range.last; ++cpu) cpus.insert(static_cast<int>(cpu));
  }
  return cpus;
}

std::string FormatCpuList(const CpuSet& cpus) {
  std::vector<std::string> parts;
  for (auto first = cpus.begin(); first != cpus.end();) {
    auto next = std::next(first);
    int last = *first;
    for (; next != cpus.end() && *next == last + 1; ++next) last = *next;
    parts.push_back(last == *first ? std::to_string(last) : fmt::format("{}-{}", *first, last));
    first = next;
  }
  return base::Join(parts, ",");
}

std::optional<CpuSet> TrainingCpus(const model::Env& env, int32_t root_pid) {
  CpuSet cpus;
  std::vector<int32_t> open = {root_pid};
  size_t threads = 0;
  bool any = false;
  while (!open.empty() && threads < kMostThreads) {
    const ProcessView view = LookAt(env, open.back(), threads);
    open.pop_back();
    open.insert(open.end(), view.children.begin(), view.children.end());
    if (view.wrapper && view.children.size() == 1) continue;
    any = any || view.readable;
    cpus.insert(view.cpus.begin(), view.cpus.end());
  }
  return any ? std::optional(cpus) : std::nullopt;
}

CpuSet CpusLeftFree(const CpuSet& allowed, const CpuSet& training) {
  CpuSet free;
  std::set_difference(allowed.begin(), allowed.end(), training.begin(), training.end(),
                      std::inserter(free, free.end()));
  return free;
}

}  // namespace epochmeter::collect
