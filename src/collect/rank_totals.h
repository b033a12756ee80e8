// SPDX-License-Identifier: Apache-2.0
// Sums for each rank of the run: its main process, and its data loader workers together. A part of
// the source process.tree. Counters never fall; what a worker did after the last reading before its
// end is not in them.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "collect/proc_file.h"
#include "collect/source.h"
#include "collect/tree_counters.h"
#include "collect/tree_roles.h"
#include "collect/tree_threads.h"

namespace epochmeter::collect {

// What status says of the memory of one process.
struct MemorySplit {
  uint64_t anon_bytes = 0, file_bytes = 0, shmem_bytes = 0, swap_bytes = 0;
};
// The text of /proc/PID/status; nothing when it has no such lines (kernels before 4.5).
std::optional<MemorySplit> ParseMemorySplit(std::string_view text);

class RankTotals {
 public:
  // Borrows what `context` refers to.
  explicit RankTotals(const SourceContext& context);
  static std::span<const model::MetricDef> Metrics();

  // Each tick, before the others: decides who is who.
  void SampleTick(model::Samples& out, int proc_fd, const std::vector<ProcStat>& members,
                  const std::map<int32_t, ProcIo>& io);
  // By pid, of all members that could be read.
  void SampleMemory(model::Samples& out, const std::map<int32_t, MemorySplit>& memory);
  void SampleWaits(model::Samples& out, const std::vector<TreeThreads::Wait>& waits);

 private:
  static constexpr size_t kCounters = 6;
  struct Rank {
    std::array<model::SeriesId, 11> series{};
    std::array<DepartingSum, kCounters> sums;
    int32_t main = 0;              // pid
    std::vector<int32_t> workers;  // pids that live
    bool here = false;             // in the last tick
  };
  using Counts = std::map<ProcKey, uint64_t>;

  Rank& Find(const RankProcesses& processes);
  void GiveTick(model::Samples& out, const RankProcesses& processes,
                const std::map<int32_t, ProcIo>& io, Rank& rank) const;
  static void GiveCounter(model::Samples& out, Rank& rank, size_t metric, size_t sum, Counts now,
                          double unit);

  const SourceContext context_;
  TreeRoles roles_;
  std::map<int32_t, Rank> ranks_;  // by rank; kNoRank for a training without ranks
  double ticks_per_s_;
  double page_bytes_;
};

}  // namespace epochmeter::collect
