// SPDX-License-Identifier: Apache-2.0
// Reads every source of this machine a few times in processes that may hang or crash without harm,
// for `doctor`.
#pragma once

#include <string>

#include "cli/command.h"
#include "collect/machine_probe.h"

namespace epochmeter::cli {

struct ProbeOptions {
  std::string root;  // stands before /proc, /sys, /dev; empty but in tests
  int32_t pid = 0;   // whose process tree and cgroup are read; 0: those of our parent
  bool gpu = true;
};

// Starts one process for the GPU sources and one for the host's, and waits for both; each is killed
// after a while. Some 3 s; 13 s with a driver that hangs.
collect::MachineProbe ProbeMachine(const ProbeOptions& options);

// Hidden verb: `epochmeter internal-probe --channel FD --what gpu|host --root DIR --root-pid PID`.
// Writes records in the codec of runfile/record_codec.h to the descriptor.
int RunProbe(const Arguments& arguments);
extern const std::span<const FlagSpec> kProbeFlags;

}  // namespace epochmeter::cli
