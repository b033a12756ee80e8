// SPDX-License-Identifier: Apache-2.0
// Whose numbers are pids? A driver names processes by their pids in the initial namespace (newer
// ones by the caller's), a container counts its own. Pids of different namespaces are never
// compared; where the host's /proc is mounted, they are translated by it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>

#include "collect/proc_pid.h"

namespace epochmeter::collect {

// A procfs of the initial pid namespace, in which pids of the driver can be looked up.
struct InitialProc {
  std::string root;          // empty: none
  int32_t training_pid = 0;  // the training's number in it
  std::string why_not;       // when there is none: what is missing, for people
  bool proc_is_ours = true;  // our own /proc counts as this process does
  bool known() const { return !root.empty(); }
};

// `training_pid` is as `proc_root`'s owner counts, `host_proc` where the host's /proc may be
// mounted ("" for nowhere). A folder counts as the host's only when its pid 2 is kthreadd and it
// shows this very process under another number.
InitialProc FindInitialProc(const std::string& proc_root, const std::string& host_proc,
                            int32_t training_pid, int32_t own_pid = ::getpid());

// EPOCHMETER_HOST_PROC, else /host/proc where that is.
std::string HostProcFromEnv();

}  // namespace epochmeter::collect
