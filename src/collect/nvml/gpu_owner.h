// SPDX-License-Identifier: Apache-2.0
// Whose are the processes that the driver lists on a GPU: this job's, or somebody else's? Where
// that can't be known for certain, nobody's.
//
// The driver names processes by the pids of the initial namespace. There, or with the host's /proc
// at hand, a pid is the job's when the process is in its tree. In another namespace numbers alone
// prove nothing: pid 1234 of the host is not ours. Newer drivers name the caller's pids, and that
// is believed after they have shown it: every listed pid is a process here with a GPU open, and one
// of the job's was not listed at a reading at which it already lived, and is now.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collect/pid_namespace.h"
#include "collect/source.h"
#include "collect/tree_members.h"

namespace epochmeter::collect::nvml {

enum class Owner : uint8_t { kUnknown, kJob, kOther };

class GpuOwner {
 public:
  // Borrows the context's env and job.
  explicit GpuOwner(const SourceContext& context, const std::string& host_proc = HostProcFromEnv());

  // Looks at the processes anew; `listed` are the pids of all GPUs at this reading.
  void Refresh(std::span<const uint32_t> listed);
  // As of the last Refresh.
  Owner Of(uint32_t pid) const;
  // Whether the driver's list holds the processes of the whole machine. In a namespace whose pids
  // it speaks it leaves out those of the others, which hold memory all the same.
  bool sees_all() const { return initial_.known(); }
  // Why Of says unknown; empty when it does not.
  const std::string& why_unknown() const { return why_unknown_; }
  // Name of a listed process (15 characters at most), empty when it can't be looked up.
  std::string NameOf(uint32_t pid) const;

 private:
  bool Scan();
  void Learn(std::span<const uint32_t> listed);
  bool HasGpuOpen(uint32_t pid) const;

  std::string proc_root_;  // of our own namespace
  int32_t root_pid_;
  std::vector<int32_t> excluded_pids_;
  InitialProc initial_;
  std::optional<TreeMembers> tree_;
  std::set<ProcKey> waiting_;  // lived at a reading that did not list them
  bool shown_ = false;         // the driver's list has shown to be in our namespace
  std::set<uint32_t> job_pids_;
  std::string why_unknown_;
};

}  // namespace epochmeter::collect::nvml
