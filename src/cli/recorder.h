// SPDX-License-Identifier: Apache-2.0
// The recorder process: owns the run file and the sampler, takes client events and captured output,
// reads the host, and ends with its job.
#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"
#include "cli/messages.h"
#include "cli/run_settings.h"

namespace epochmeter::cli {

struct RecorderStart {
  bool resume = false;      // the run file is there already: a recorder before this one died
  pid_t training_pid = -1;  // when known already (attach, or a restart)
};

// Records until the training has ended; the exit code for the process. Speaks only on stderr: one
// line at the start and two at the end, unless settings.quiet.
int RunRecorder(const RunSettings& settings, const RecorderChannels& channels,
                const RecorderStart& start);

// Whether a datagram socket at `path` has a receiver.
bool SomebodyListens(const std::string& path);

// Signal handler that ends the recording of a recorder without a launcher, in order.
void RequestDetach(int signal);

// Binds the client socket that `settings` names, for a recorder without a launcher.
base::Result<base::UniqueFd> BindEventSocket(const std::string& path);

}  // namespace epochmeter::cli
