// SPDX-License-Identifier: Apache-2.0
#include "collect/tree_counters.h"

#include <algorithm>
#include <utility>

namespace epochmeter::collect {

namespace {

void AddTo(TreeCounts& sum, const TreeCounts& counts) {
  for (size_t i = 0; i < kTreeCounters; ++i) sum[i] += counts[i];
}

uint64_t Above(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

TreeCounters::Processes TreeCounters::ByPid(const std::vector<ProcessCounts>& live) {
  Processes now;
  for (const ProcessCounts& process : live) now[process.key.pid] = process;
  return now;
}

bool TreeCounters::Lives(const ProcessCounts& before, const Processes& now) const {
  const auto found = now.find(before.key.pid);
  return found != now.end() && found->second.key == before.key;
}

// The nearest ancestor that lives: a parent that ended too has passed on what it had reaped.
std::optional<int32_t> TreeCounters::HeirOf(const ProcessCounts& ended,
                                            const Processes& now) const {
  int32_t parent = ended.parent;
  for (size_t depth = 0; depth <= before_.size(); ++depth) {
    const auto known = before_.find(parent);
    if (known == before_.end()) return std::nullopt;
    if (Lives(known->second, now)) return parent;
    parent = known->second.parent;
  }
  return std::nullopt;
}

TreeCounters::Heirs TreeCounters::Inherited(const Processes& now, TreeCounts* without_heir) const {
  Heirs heirs;
  for (const auto& [pid, process] : before_) {
    if (Lives(process, now)) continue;
    const auto heir = HeirOf(process, now);
    AddTo(heir ? heirs[*heir] : *without_heir, process.own_and_reaped);
  }
  return heirs;
}

uint64_t TreeCounters::ReapedCpuSince(const ProcessCounts& process) const {
  const auto known = before_.find(process.key.pid);
  const bool same = known != before_.end() && known->second.key == process.key;
  return Above(process.reaped_cpu_ticks, same ? known->second.reaped_cpu_ticks : 0);
}

// Reads again what may have changed hands during the scan: a parent that does not yet show an ended
// child, and children that a parent may have reaped after they were read. True when `now` changed.
bool TreeCounters::Settle(Processes& now, std::map<ProcKey, bool>& checked,
                          const Reread& reread) const {
  TreeCounts unused{};
  Heirs heirs = Inherited(now, &unused);
  std::vector<ProcKey> doubtful;
  for (const auto& [pid, process] : now) {
    const uint64_t inherited = heirs.contains(pid) ? heirs[pid][kCpuTicks] : 0;
    if (ReapedCpuSince(process) < inherited) doubtful.push_back(process.key);
    const auto parent = now.find(process.parent);
    if (parent == now.end()) continue;
    const auto share = heirs.find(process.parent);
    const uint64_t explained = share == heirs.end() ? 0 : share->second[kCpuTicks];
    const uint64_t surplus = Above(ReapedCpuSince(parent->second), explained);
    if (surplus > 0 && process.own_and_reaped[kCpuTicks] <= surplus) {
      doubtful.push_back(process.key);
    }
  }
  bool changed = false;
  for (const ProcKey& key : doubtful) {
    if (!checked.emplace(key, true).second) continue;
    const auto again = reread(key);
    if (again && again->key == key) {
      now[key.pid] = *again;
    } else {
      now.erase(key.pid);
    }
    changed = true;
  }
  return changed;
}

// Adds to `ended_` what no live process shows.
void TreeCounters::Keep(const Processes& now) {
  const Heirs heirs = Inherited(now, &ended_);
  for (const auto& [pid, inherited] : heirs) {
    const ProcessCounts& heir = now.at(pid);
    const ProcessCounts& heir_before = before_.at(pid);
    const uint64_t reaped_cpu = ReapedCpuSince(heir);
    const uint64_t reaped_faults = Above(heir.reaped_major_faults,
                                         heir_before.reaped_major_faults);
    ended_[kCpuTicks] += Above(inherited[kCpuTicks], reaped_cpu);
    ended_[kMajorFaults] += Above(inherited[kMajorFaults], reaped_faults);
    // The kernel shows own and reaped I/O as one number; the CPU time tells whether it was passed
    // on. Without CPU time to tell by, a rise of the heir's number is taken for the child's.
    for (const TreeCounter io : {kReadBytes, kWrittenBytes}) {
      const uint64_t rise = Above(heir.own_and_reaped[io], heir_before.own_and_reaped[io]);
      const bool told = inherited[kCpuTicks] > 0 || reaped_cpu > 0;
      const bool passed_on = told && reaped_cpu >= inherited[kCpuTicks];
      ended_[io] += told && !passed_on ? inherited[io] : Above(inherited[io], rise);
    }
  }
}

void TreeCounters::Update(const std::vector<ProcessCounts>& live, const Reread& reread) {
  Processes now = ByPid(live);
  std::map<ProcKey, bool> checked;
  while (Settle(now, checked, reread)) {
  }
  Keep(now);
  TreeCounts sum = ended_;
  for (const auto& [pid, process] : now) AddTo(sum, process.own_and_reaped);
  for (size_t i = 0; i < kTreeCounters; ++i) totals_[i] = std::max(totals_[i], sum[i]);
  before_ = std::move(now);
}

void DepartingSum::Update(std::map<ProcKey, uint64_t> now) {
  for (const auto& [key, value] : before_) {
    const auto found = now.find(key);
    if (found == now.end() || found->second < value) gone_ += value;
  }
  uint64_t sum = gone_;
  for (const auto& [key, value] : now) sum += value;
  total_ = std::max(total_, sum);
  before_ = std::move(now);
}

}  // namespace epochmeter::collect
