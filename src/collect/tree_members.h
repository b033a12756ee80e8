// SPDX-License-Identifier: Apache-2.0
// Which processes belong to a run: the root process, whatever descends from it, and what has left
// the family by a double fork or setsid(2) but is in a session or process group that a member
// founded, was handed to our launcher (a subreaper), carries the run's id in its environment, or is
// in a cgroup that is the job's own. A member stays one until it ends.
//
// One scan of /proc by PPid; processes that are known not to belong are recognised by the inode of
// their /proc entry and not read again, so that a scan costs little on a busy machine.
#pragma once

#include <dirent.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "collect/proc_pid.h"

namespace epochmeter::collect {

class TreeMembers {
 public:
  // `excluded` and their descendants never belong, nor does the calling process: a training that
  // starts its own recorder is not to be charged for it. An error when the root is not there.
  static base::Result<TreeMembers> Make(const std::string& proc_root, int32_t root_pid,
                                        const std::vector<int32_t>& excluded);

  // From the next scan on, takes what the cgroup.procs file lists too, if it is the job's own now:
  // if it lists the root, other members and processes of ours, and nobody else.
  void FollowCgroup(const std::string& procs_file);
  // Reads /proc once. Processes that end meanwhile are left out.
  base::Result<> Scan();
  // Reads the members of the last scan again, and no others: a scan of all of /proc costs more than
  // 1 us a process of the machine. Those that have ended are no members any more.
  void Refresh();
  // As of the last scan or refresh, in order of pid; zombies included.
  const std::vector<ProcStat>& members() const { return members_; }
  // Descriptor of the proc root, for reading more of a member.
  int proc_fd() const { return ::dirfd(dir_.get()); }
  std::optional<ProcStat> ReadStat(int32_t pid);
  // Reads /proc/PID/io of a member; 0 or errno.
  int ReadIo(int32_t pid, std::string& text);

 private:
  // Files of a member that stay open: opening one costs as much as reading it. One of a process
  // that has ended gives ESRCH, whoever has its pid now.
  struct Kept {
    uint64_t inode = 0;
    base::UniqueFd stat, io;
  };
  enum class Verdict : uint8_t { kOutside, kExcluded };
  struct Outsider {
    uint64_t inode = 0;
    Verdict verdict = Verdict::kOutside;
    uint64_t seen_in_scan = 0;
  };
  struct CloseDir {
    void operator()(DIR* dir) const { ::closedir(dir); }
  };
  struct Candidate {
    ProcStat stat;
    uint64_t inode = 0;
    bool decided = false;
  };

  TreeMembers() = default;
  bool IsKnownOutsider(int32_t pid, uint64_t inode);
  bool TakeIfExcluded(Candidate& candidate);
  bool TakeIfMember(Candidate& candidate);
  void Take(Candidate& candidate);
  void Spread(std::vector<Candidate>& candidates);
  bool IsMarked(const ProcStat& stat);
  bool IsOurs(int32_t pid) const;
  bool IsHandedOver(const ProcStat& stat) const;
  std::set<int32_t> ReadCgroup() const;
  void ForgetOldGroups();
  void KeepOpen(const std::vector<Candidate>& candidates);
  int ReadKept(base::UniqueFd& fd, const char* name, std::string& text) const;

  std::unique_ptr<DIR, CloseDir> dir_;
  ProcKey root_;
  std::string run_id_;       // of the root's environment; empty when it has none
  std::string own_program_;  // path of our executable
  int32_t reaper_pid_ = 0;   // our launcher, when it is the root's parent
  std::string cgroup_file_;  // empty: not followed
  std::set<int32_t> cgroup_pids_;
  std::set<int32_t> excluded_pids_;
  std::map<int32_t, Outsider> outsiders_;
  std::set<ProcKey> before_;          // members of the scan before
  std::set<int32_t> member_pids_;     // of this scan
  std::set<int32_t> founded_groups_;  // sessions and process groups whose leader is or was a member
  std::vector<ProcStat> members_;
  std::map<int32_t, Kept> kept_;  // of members, a few hundred at most
  std::string buffer_;
  uint64_t scan_ = 0;
};

}  // namespace epochmeter::collect
