// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cli/relay.h"

namespace epochmeter::cli {
namespace {

using Channel = std::pair<base::UniqueFd, base::UniqueFd>;

// Whether two descriptors are one open file: then their writes are ordered between each other.
bool SameOpenFile(int a, int b) {
  constexpr int kKcmpFile = 0;
  const auto pid = ::getpid();
  const long order = ::syscall(SYS_kcmp, pid, pid, kKcmpFile, a, b);
  if (order >= 0) return order == 0;
  struct stat first {
  }, second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino && first.st_rdev == second.st_rdev;
}

// A pty that passes bytes as they are: the real terminal behind the relay does the line discipline.
base::Result<Channel> OpenPty(int terminal) {
  base::UniqueFd parent(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!parent.valid() || ::grantpt(parent.get()) != 0 || ::unlockpt(parent.get()) != 0) {
    return base::SystemError("cannot make a pseudo terminal", "/dev/ptmx", errno);
  }
  char name[128];
  if (::ptsname_r(parent.get(), name, sizeof name) != 0) {
    return base::SystemError("cannot name the pseudo terminal", "/dev/ptmx", errno);
  }
  base::UniqueFd child(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!child.valid()) return base::SystemError("cannot open", name, errno);
  termios mode{};
  if (::tcgetattr(terminal, &mode) == 0) {
    mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    mode.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(child.get(), TCSANOW, &mode);
  }
  winsize size{};
  if (::ioctl(terminal, TIOCGWINSZ, &size) == 0) ::ioctl(child.get(), TIOCSWINSZ, &size);
  return std::make_pair(std::move(parent), std::move(child));
}

base::Result<Channel> OpenPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::SystemError("cannot make a pipe", "pipe2", errno);
  return std::make_pair(base::UniqueFd(ends[0]), base::UniqueFd(ends[1]));
}

// One stream to `to`, and in `child` the end that the training gets.
base::Result<> Add(OutputPlan& plan, int to, unsigned stream, base::UniqueFd* child) {
  EPM_ASSIGN(Channel channel, ::isatty(to) != 0 ? OpenPty(to) : OpenPipe());
  EPM_ASSIGN(Channel hand, OpenPipe());
  EPM_ASSIGN(Channel copy, OpenPipe());
  plan.streams.push_back({.from = channel.first.get(),
                          .to = to,
                          .stream = stream,
                          .hand = {.out = hand.first.get(), .in = hand.second.get()},
                          .copy = {.out = copy.first.get(), .in = copy.second.get()}});
  // Ours alone; splice(2) from a terminal would wait in spite of its own flag.
  ::fcntl(channel.first.get(), F_SETFL, ::fcntl(channel.first.get(), F_GETFL) | O_NONBLOCK);
  plan.sources.push_back(std::move(channel.first));
  for (base::UniqueFd* end : {&hand.first, &hand.second, &copy.first, &copy.second}) {
    plan.pipes.push_back(std::move(*end));
  }
  *child = std::move(channel.second);
  return {};
}

}  // namespace

base::Result<OutputPlan> PlanOutput() {
  OutputPlan plan;
  // A standard descriptor that closes on exec is one that was closed when we were started.
  const auto given = [](int fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0;
  };
  const bool has_out = given(STDOUT_FILENO);
  const bool has_err = given(STDERR_FILENO);
  const bool together = has_out && has_err && SameOpenFile(STDOUT_FILENO, STDERR_FILENO);
  if (has_out) EPM_TRY(Add(plan, STDOUT_FILENO, together ? 3 : 1, &plan.child_stdout));
  if (together) {
    plan.child_stderr = base::UniqueFd(::fcntl(plan.child_stdout.get(), F_DUPFD_CLOEXEC, 3));
    if (!plan.child_stderr.valid()) return base::SystemError("cannot make a pipe", "dup", errno);
  } else if (has_err) {
    EPM_TRY(Add(plan, STDERR_FILENO, 2, &plan.child_stderr));
  }
  return plan;
}

}  // namespace epochmeter::cli
