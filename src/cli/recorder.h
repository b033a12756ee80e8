// SPDX-License-Identifier: Apache-2.0
// The recorder process: owns the run file and the sampler, takes client events and captured output,
// reads the host, and ends with its job.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "cli/messages.h"
#include "cli/run_settings.h"

namespace epochmeter::cli {

struct RecorderStart {
  bool resume = false;      // the run file is there already: a recorder before this one died
  pid_t training_pid = -1;  // when known already (attach, or a restart)
  // Of attach: a pidfd (borrowed; -1 where there is none), and the start time of the process, so
  // that another one with the same pid is not taken for it.
  int training_fd = -1;
  uint64_t training_start_ticks = 0;
  // Of a restart: how the training ended, when it has; and what is to be told of the recorder
  // before.
  std::optional<int> training_status = std::nullopt;
  std::optional<ControlMessage> replacement = std::nullopt;
};

// Records until the training has ended; the exit code for the process. Speaks only on stderr: one
// line at the start and two at the end, unless settings.quiet.
int RunRecorder(const RunSettings& settings, const RecorderChannels& channels,
                const RecorderStart& start);

// By this name of a process another program finds recorders.
inline constexpr const char* kRecorderName = "epm-recorder";

// Whether a datagram socket at `path` has a receiver.
bool SomebodyListens(const std::string& path);

// Signal handler that ends the recording of a recorder without a launcher, in order.
void RequestDetach(int signal);

// Removes sockets of runs that were killed from the folder of `socket_path`: those that nobody
// listens to.
void RemoveAbandonedSockets(const std::string& socket_path);

// Binds the client socket that `settings` names, for a recorder without a launcher.
base::Result<base::UniqueFd> BindEventSocket(const std::string& path);

}  // namespace epochmeter::cli
