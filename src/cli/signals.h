// SPDX-License-Identifier: Apache-2.0
// The launcher's signals: every one that can be caught is read from a descriptor, so that none ends
// the launcher and each can be passed on; what was set before is given to the training unchanged.
#pragma once

#include <sys/signalfd.h>

#include <csignal>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/messages.h"

namespace epochmeter::cli {

class SignalWatch {
 public:
  // Blocks the signals and opens the descriptor. SIGCHLD gets its default action even where it was
  // inherited as ignored (then no child could be waited for); SIGPIPE is ignored.
  base::Result<> Start();
  // Mask and actions as they were before Start: for the training, in the child or before an exec.
  void Restore() const;

  struct Received {
    int signal = 0;
    bool from_kernel = false;  // the terminal: the whole foreground group has it
    pid_t sender = 0;
  };
  int fd() const { return fd_.get(); }
  // All that wait, SIGCHLD left out. Never blocks.
  std::vector<Received> Take();
  void Close() { fd_.Reset(); }

 private:
  base::UniqueFd fd_;
  bool started_ = false;
  sigset_t mask_{};
  struct sigaction child_action_ {};
  struct sigaction pipe_action_ {};
};

// For our own helper processes, before their threads start: what a terminal or a job manager sends
// to the group is for the training; a limit on file sizes or a closed pipe is an error code to
// them, not a death. All that can be are ignored, and blocked so that WatchSignalsOfTheGroup can
// tell of them.
void IgnoreSignalsOfTheGroup();
// In a helper: a descriptor (never blocking) that reads those signals; invalid when none can be
// had.
base::UniqueFd WatchSignalsOfTheGroup();
// The message that tells the launcher of one.
HelperMessage SeenSignal(const signalfd_siginfo& info);
// For a program that a helper starts: nothing is blocked.
void UnblockAllSignals();

}  // namespace epochmeter::cli
