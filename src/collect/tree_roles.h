// SPDX-License-Identifier: Apache-2.0
// Who is who among the run's processes: the main process of each rank, and its data loader workers.
//
// A rank is what RankOfEnviron says of a process; its main process is the topmost one that has it,
// below wrappers such as a shell. Workers are those of its descendants that run the same program,
// without the helpers that Python starts. A training without ranks has one main process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/proc_pid.h"
#include "collect/rank_env.h"

namespace epochmeter::collect {

// One rank's processes. Zombies are in them, as in the members.
struct RankProcesses {
  std::optional<int32_t> rank;  // nothing for the main process of a training without ranks
  std::optional<int32_t> local_rank;
  const ProcStat* main = nullptr;
  std::vector<const ProcStat*> workers;
};

class TreeRoles {
 public:
  // `members` as TreeMembers has them. The result points into them. Each process is looked at when
  // it is new, and once more later, because a child has its parent's program until it calls exec.
  std::vector<RankProcesses> Assign(int64_t t_ns, int proc_fd, int32_t root_pid,
                                    const std::vector<ProcStat>& members);

 private:
  struct Facts {
    int64_t look_again_ns = 0;  // 0: no more
    std::optional<RankFacts> rank;
    std::string program;   // path of the executable, else the first word of the command line
    bool wrapper = false;  // a shell or the like
    bool service = false;  // a helper of Python's multiprocessing or of a compiler
    bool seen = false;     // in this call
  };
  using Children = std::map<int32_t, std::vector<const ProcStat*>>;

  void LookAtAll(int64_t t_ns, int proc_fd, const std::vector<ProcStat>& members);
  Facts Look(int proc_fd, int32_t pid) const;
  const Facts& Of(const ProcStat& stat) const { return known_.at(stat.key); }
  bool IsSameRank(const ProcStat& stat, const RankFacts& rank) const;
  std::map<int32_t, RankFacts> BestRanks(const std::vector<ProcStat>& members) const;
  std::map<int32_t, const ProcStat*> FindHeads(const std::map<int32_t, RankFacts>& ranks,
                                               const std::vector<ProcStat>& members) const;
  const ProcStat* BelowWrappers(const ProcStat* head, const Children& children) const;
  void AddWorkers(const Children& children, RankProcesses& processes) const;

  std::map<ProcKey, Facts> known_;
  std::optional<int64_t> began_ns_;
};

}  // namespace epochmeter::collect
