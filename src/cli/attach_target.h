// SPDX-License-Identifier: Apache-2.0
// The process that `attach` is to record: what it is, what of it can't be seen from here, and
// whether a recorder follows it already. Only /proc is read, nothing is traced.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {

struct AttachTarget {
  pid_t pid = -1;
  uint64_t start_ticks = 0;  // with the pid unique for a boot
  base::UniqueFd pidfd;      // invalid where the kernel or a filter refuses it
  std::vector<std::string> command;
  std::optional<std::string> environment;  // as /proc/PID/environ has it, where it may be read
  std::string working_folder;              // empty when unknown
  std::vector<std::string> limits;         // sentences: what will not be recorded, and why
};

// An error when there is no such process, it has ended, or the number is that of a thread.
base::Result<AttachTarget> LookAtTarget(pid_t pid);
// True while the process with this start time is there and has not ended.
bool StillRuns(pid_t pid, uint64_t start_ticks);

// A recorder of this user that follows `pid` or a process that it descends from.
struct Recording {
  pid_t recorder_pid = -1;
  pid_t training_pid = -1;
  std::string run_path;     // empty when it can't be seen
  std::string socket_path;  // where it takes events; empty likewise
};
std::optional<Recording> FindRecordingOf(pid_t pid);

}  // namespace epochmeter::cli
