// SPDX-License-Identifier: Apache-2.0
// What the threads of the run's processes tell: how often they gave up or lost their CPU, and how
// long they were ready to run and had none. One file of procfs for each thread and kind, so it is
// read seldom, and not at all when there are very many threads.
#pragma once

#include <string>
#include <vector>

#include "collect/proc_pid.h"
#include "collect/tree_counters.h"

namespace epochmeter::collect {

class TreeThreads {
 public:
  static constexpr size_t kMostThreads = 4096;
  struct Wait {
    ProcKey thread;  // the thread's id, with the start of its process
    int32_t pid = 0;
    uint64_t ns = 0;
  };

  // False when there are more than kMostThreads: then nothing was read. What threads counted that
  // have gone stays in the sums.
  bool Read(int proc_fd, const std::vector<ProcStat>& members);

  uint64_t voluntary_switches() const { return voluntary_.total(); }
  uint64_t involuntary_switches() const { return involuntary_.total(); }
  uint64_t wait_ns() const { return wait_ns_.total(); }
  // Of this reading. Empty when the kernel does not count them (CONFIG_SCHED_INFO).
  const std::vector<Wait>& waits() const { return waits_; }

 private:
  using Counts = std::map<ProcKey, uint64_t>;
  void ReadProcess(int proc_fd, const ProcStat& stat, Counts& voluntary, Counts& involuntary);

  DepartingSum voluntary_, involuntary_, wait_ns_;
  std::vector<Wait> waits_;
  std::string buffer_;
};

}  // namespace epochmeter::collect
