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

uint64_t TreeCounters::SurplusOf(const ProcessCounts& process, const Heirs& heirs) const {
  const auto share = heirs.find(process.key.pid);
  return Above(ReapedCpuSince(process), share == heirs.end() ? 0 : share->second[kCpuTicks]);
}

// What may have changed hands during the scan: heirs, which may have been read before they reaped,
// and children of a parent that reaped more than the ended ones explain, since they may have been
// read before they were reaped. Where the parent has ended too, any surplus may hold the child.
std::vector<ProcKey> TreeCounters::Doubtful(const Processes& now) const {
  TreeCounts unused{};
  const Heirs heirs = Inherited(now, &unused);
  std::vector<ProcKey> doubtful;
  uint64_t most_surplus = 0;
  for (const auto& [pid, process] : now) {
    if (heirs.contains(pid)) doubtful.push_back(process.key);
    most_surplus = std::max(most_surplus, SurplusOf(process, heirs));
  }
  if (most_surplus == 0) return doubtful;
  for (const auto& [pid, process] : now) {
    const auto parent = now.find(process.parent);
    const uint64_t surplus = parent == now.end() ? most_surplus : SurplusOf(parent->second, heirs);
    if (surplus > 0 && process.own_and_reaped[kCpuTicks] <= surplus) {
      doubtful.push_back(process.key);
    }
  }
  return doubtful;
}

// Reads the doubtful again, each a few times at most. True when `now` changed.
bool TreeCounters::Settle(Processes& now, std::map<ProcKey, int>& checks,
                          const Reread& reread) const {
  constexpr int kMostChecks = 3;
  bool changed = false;
  for (const ProcKey& key : Doubtful(now)) {
    if (++checks[key] > kMostChecks) continue;
    const auto again = reread(key);
    if (again && again->key == key) {
      changed |= again->own_and_reaped != now.at(key.pid).own_and_reaped;
      now[key.pid] = *again;
    } else {
      changed |= now.erase(key.pid) > 0;
    }
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
    const uint64_t major = Above(heir.reaped_major_faults, heir_before.reaped_major_faults);
    const uint64_t minor = Above(heir.reaped_minor_faults, heir_before.reaped_minor_faults);
    ended_[kCpuTicks] += Above(inherited[kCpuTicks], reaped_cpu);
    ended_[kMajorFaults] += Above(inherited[kMajorFaults], major);
    ended_[kMinorFaults] += Above(inherited[kMinorFaults], minor);
    // The kernel shows own and reaped I/O as one number. An heir that reaped no CPU time got no
    // I/O either; else its rise is taken for what it got, so that nothing counts twice.
    for (const TreeCounter io : {kReadBytes, kWrittenBytes, kReadChars, kWrittenChars}) {
      const uint64_t rise = Above(heir.own_and_reaped[io], heir_before.own_and_reaped[io]);
      const bool vanished = reaped_cpu == 0 && inherited[kCpuTicks] > 0;
      ended_[io] += vanished ? inherited[io] : Above(inherited[io], rise);
    }
  }
}

void TreeCounters::Update(const std::vector<ProcessCounts>& live, const Reread& reread) {
  Processes now = ByPid(live);
  std::map<ProcKey, int> checks;
  while (Settle(now, checks, reread)) {
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
