// SPDX-License-Identifier: Apache-2.0
// Sums of counters over a changing set of processes that never fall.
//
// When a process ends, the kernel adds its counters to those of the parent that waits for it; when
// nobody waits (SIGCHLD ignored, a parent outside the run), they vanish. Both must leave the sum as
// it was, also when the process ends in the middle of a scan. The parent's counters are raised
// before the child's entry in /proc goes, so that reading the right process once more tells which
// of the two happened.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "collect/proc_pid.h"

namespace epochmeter::collect {

enum TreeCounter : size_t {
  kCpuTicks,
  kMajorFaults,
  kReadBytes,
  kWrittenBytes,
  kMinorFaults,
  kReadChars,
  kWrittenChars,
  kTreeCounters
};
using TreeCounts = std::array<uint64_t, kTreeCounters>;

struct ProcessCounts {
  ProcKey key;
  int32_t parent = 0;
  TreeCounts own_and_reaped{};  // of the process and what it reaped
  uint64_t reaped_cpu_ticks = 0;
  uint64_t reaped_major_faults = 0;
  uint64_t reaped_minor_faults = 0;
};

class TreeCounters {
 public:
  // Reads a process again; nothing when it has ended since.
  using Reread = std::function<std::optional<ProcessCounts>(const ProcKey&)>;

  // `live` is every process of the run that a scan found.
  void Update(const std::vector<ProcessCounts>& live, const Reread& reread);
  // Since the run's processes began, also of those that ended.
  const TreeCounts& totals() const { return totals_; }

 private:
  using Processes = std::map<int32_t, ProcessCounts>;  // by pid
  // Sum of the counts last seen of ended processes, by the live process that may have reaped them.
  using Heirs = std::map<int32_t, TreeCounts>;

  static Processes ByPid(const std::vector<ProcessCounts>& live);
  std::optional<int32_t> HeirOf(const ProcessCounts& ended, const Processes& now) const;
  bool Lives(const ProcessCounts& before, const Processes& now) const;
  Heirs Inherited(const Processes& now, TreeCounts* without_heir) const;
  uint64_t ReapedCpuSince(const ProcessCounts& process) const;
  uint64_t SurplusOf(const ProcessCounts& process, const Heirs& heirs) const;
  std::vector<ProcKey> Doubtful(const Processes& now) const;
  bool Settle(Processes& now, std::map<ProcKey, int>& checks, const Reread& reread) const;
  void Keep(const Processes& now);

  Processes before_;
  TreeCounts ended_{};  // of processes whose counters vanished
  TreeCounts totals_{};
};

// Sum of a counter over things that take it along when they go, such as a thread's switches.
class DepartingSum {
 public:
  // The values of all that are there now; keys that are missing have gone.
  void Update(std::map<ProcKey, uint64_t> now);
  uint64_t total() const { return total_; }

 private:
  std::map<ProcKey, uint64_t> before_;
  uint64_t gone_ = 0;
  uint64_t total_ = 0;
};

}  // namespace epochmeter::collect
