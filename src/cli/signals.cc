// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace epochmeter::cli {
namespace {

// Not caught: what can't be, faults of our own, and stops, which are for the job as a whole.
constexpr std::array kNotWatched = {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE,
                                    SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS};

sigset_t WatchedSignals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    const bool of_libc = signal > 31 && signal < SIGRTMIN;
    const bool left_out =
        std::find(kNotWatched.begin(), kNotWatched.end(), signal) != kNotWatched.end();
    if (!of_libc && !left_out) sigaddset(&watched, signal);
  }
  return watched;
}

}  // namespace

base::Result<> SignalWatch::Start() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &action, &child_action_);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &pipe_action_);
  const sigset_t watched = WatchedSignals();
  ::sigprocmask(SIG_BLOCK, &watched, &mask_);
  started_ = true;
  fd_ = base::UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_.valid()) return base::SystemError("cannot watch signals", "signalfd", errno);
  return {};
}

void SignalWatch::Restore() const {
  if (!started_) return;
  ::sigaction(SIGCHLD, &child_action_, nullptr);
  ::sigaction(SIGPIPE, &pipe_action_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

std::vector<SignalWatch::Received> SignalWatch::Take() {
  std::vector<Received> received;
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGCHLD) continue;
    received.push_back({.signal = static_cast<int>(info.ssi_signo),
                        .from_kernel = info.ssi_code == SI_KERNEL,
                        .sender = static_cast<pid_t>(info.ssi_pid)});
  }
  return received;
}

void IgnoreSignalsOfTheGroup() {
  sigset_t blocked = WatchedSignals();
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (sigismember(&blocked, signal) == 1 && signal != SIGCHLD) ::signal(signal, SIG_IGN);
  }
  for (const int signal : {SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU}) ::signal(signal, SIG_IGN);
  sigdelset(&blocked, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

base::UniqueFd WatchSignalsOfTheGroup() {
  sigset_t watched = WatchedSignals();
  sigdelset(&watched, SIGCHLD);
  return base::UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

HelperMessage SeenSignal(const signalfd_siginfo& info) {
  return {.kind = HelperMessage::Kind::kSignalSeen,
          .value = static_cast<int32_t>(info.ssi_signo),
          .sender = static_cast<int32_t>(info.ssi_pid)};
}

void UnblockAllSignals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace epochmeter::cli
