// SPDX-License-Identifier: Apache-2.0
#include "cli/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "cli/messages.h"

namespace epochmeter::cli {
namespace {

volatile std::sig_atomic_t g_window_changed = 0;  // set by SIGWINCH only

class Relay {
 public:
  Relay(std::vector<RelayStream> streams, RelayChannels channels)
      : streams_(std::move(streams)), channels_(channels) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;  // then tee fails and bytes are copied
    copy_out_ = base::UniqueFd(ends[0]);
    copy_in_ = base::UniqueFd(ends[1]);
  }

  void Run() {
    while (AnyOpen()) {
      const bool ready = Wait();
      if (g_window_changed != 0) CopyWindowSizes();
      for (RelayStream& stream : streams_) {
        if (ready && stream.from >= 0) Pass(stream);
      }
      if (training_ended_ && !ready) Answer();
    }
    Answer();
  }

 private:
  bool AnyOpen() const {
    for (const RelayStream& stream : streams_) {
      if (stream.from >= 0) return true;
    }
    return false;
  }

  // Waits for output, or for the training's end. After the end it only looks whether more is there
  // (100 ms), then waits again: grandchildren may hold the pipe for long.
  bool Wait() {
    std::vector<pollfd> polls;
    for (const RelayStream& stream : streams_) {
      if (stream.from >= 0) polls.push_back({.fd = stream.from, .events = POLLIN, .revents = 0});
    }
    const size_t stream_count = polls.size();
    if (!training_ended_)
      polls.push_back({.fd = channels_.control, .events = POLLIN, .revents = 0});
    const int timeout_ms = training_ended_ && !answered_ ? 0 : -1;
    if (::poll(polls.data(), polls.size(), timeout_ms) < 0) return false;
    if (!training_ended_ && polls.back().revents != 0) training_ended_ = true;
    for (size_t i = 0; i < stream_count; ++i) {
      if (polls[i].revents != 0) return true;
    }
    return false;
  }

  void Pass(RelayStream& stream) {
    pollfd poll_one{.fd = stream.from, .events = POLLIN, .revents = 0};
    if (::poll(&poll_one, 1, 0) <= 0) return;
    if (Move(stream)) return;
    const ssize_t n = ::read(stream.from, payload_ + sizeof(CaptureHeader), kCaptureBytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {  // a pty whose last writer is gone reads as EIO
      ::close(std::exchange(stream.from, -1));
      return;
    }
    if (!Deliver(stream.to, static_cast<size_t>(n))) CloseForTraining(stream);
    Copy(stream.stream, static_cast<size_t>(n));
  }

  // Passes on without taking the bytes into this process: they leave the pipe in the moment in
  // which they reach their destination, so that a relay killed at any instant loses and repeats
  // nothing. False when source or destination can't do that (terminals, files opened for
  // appending).
  bool Move(RelayStream& stream) {
    const ssize_t copied = ::tee(stream.from, copy_in_.get(), kCaptureBytes, SPLICE_F_NONBLOCK);
    if (copied <= 0) return copied < 0 && (errno == EAGAIN || errno == EINTR);
    auto left = static_cast<size_t>(copied);
    while (left > 0) {
      const ssize_t n = ::splice(stream.from, nullptr, stream.to, nullptr, left, 0);
      if (n > 0) {
        left -= static_cast<size_t>(n);
      } else if (n < 0 && errno == EAGAIN) {
        pollfd writable{.fd = stream.to, .events = POLLOUT, .revents = 0};
        ::poll(&writable, 1, -1);
      } else if (n < 0 && errno == EINVAL) {
        break;
      } else if (n == 0 || errno != EINTR) {
        CloseForTraining(stream);
        break;
      }
    }
    char* const bytes = payload_ + sizeof(CaptureHeader);
    const ssize_t n = ::read(copy_out_.get(), bytes, static_cast<size_t>(copied));
    if (n != copied) return true;
    if (left > 0 && stream.from >= 0)
      return FinishByCopy(stream, static_cast<size_t>(copied), left);
    Copy(stream.stream, static_cast<size_t>(copied));
    return true;
  }

  // The last `left` of the `size` bytes in payload_ are still in the pipe and can't be spliced:
  // writes them, then takes them out.
  bool FinishByCopy(RelayStream& stream, size_t size, size_t left) {
    char* const bytes = payload_ + sizeof(CaptureHeader);
    std::string moved(bytes, size);
    std::memmove(bytes, moved.data() + (size - left), left);
    if (!Deliver(stream.to, left)) CloseForTraining(stream);
    std::memcpy(bytes, moved.data(), size);
    Copy(stream.stream, size);
    for (size_t taken = 0; taken < left && stream.from >= 0;) {
      const ssize_t n = ::read(stream.from, moved.data(), left - taken);
      if (n > 0) taken += static_cast<size_t>(n);
      if (n == 0 || (n < 0 && errno != EINTR)) break;
    }
    return true;
  }

  // The destination is gone: closing the source lets the training learn it.
  void CloseForTraining(RelayStream& stream) {
    ::close(std::exchange(stream.from, -1));
    Tell(static_cast<char>(kRelayStreamClosed + (&stream - streams_.data())));
  }

  bool Deliver(int to, size_t size) {
    const char* at = payload_ + sizeof(CaptureHeader);
    while (size > 0) {
      const ssize_t n = ::write(to, at, size);
      if (n > 0) {
        at += n;
        size -= static_cast<size_t>(n);
      } else if (n < 0 && errno == EAGAIN) {
        pollfd writable{.fd = to, .events = POLLOUT, .revents = 0};
        ::poll(&writable, 1, -1);
      } else if (n < 0 && errno != EINTR) {
        return false;
      }
    }
    return true;
  }

  void Copy(unsigned stream, size_t size) {
    const CaptureHeader header{.t_ns = base::MonotonicNs(),
                               .dropped_bytes = dropped_bytes_,
                               .stream = stream,
                               .padding = 0};
    std::memcpy(payload_, &header, sizeof header);
    const ssize_t n =
        ::send(channels_.capture, payload_, sizeof header + size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) dropped_bytes_ += size;
  }

  void CopyWindowSizes() {
    g_window_changed = 0;
    for (const RelayStream& stream : streams_) {
      winsize size{};
      if (stream.from >= 0 && ::ioctl(stream.to, TIOCGWINSZ, &size) == 0) {
        ::ioctl(stream.from, TIOCSWINSZ, &size);
      }
    }
  }

  void Answer() {
    if (!answered_) Tell(kRelayDrained);
    answered_ = true;
  }

  void Tell(char message) {
    [[maybe_unused]] const ssize_t n =
        ::send(channels_.control, &message, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  std::vector<RelayStream> streams_;
  RelayChannels channels_;
  base::UniqueFd copy_out_, copy_in_;  // a pipe that holds the recorder's copy for a moment
  bool training_ended_ = false;
  bool answered_ = false;
  uint64_t dropped_bytes_ = 0;
  char payload_[sizeof(CaptureHeader) + kCaptureBytes];
};

void OnWindowChange(int) { g_window_changed = 1; }

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
base::Result<std::pair<base::UniqueFd, base::UniqueFd>> OpenPty(int terminal) {
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

base::Result<std::pair<base::UniqueFd, base::UniqueFd>> OpenChannel(int destination) {
  if (::isatty(destination) != 0) return OpenPty(destination);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::SystemError("cannot make a pipe", "pipe2", errno);
  return std::make_pair(base::UniqueFd(ends[0]), base::UniqueFd(ends[1]));
}

}  // namespace

void RunRelay(std::vector<RelayStream> streams, RelayChannels channels) {
  struct sigaction action {};
  action.sa_handler = OnWindowChange;
  ::sigaction(SIGWINCH, &action, nullptr);
  Relay(std::move(streams), channels).Run();
}

base::Result<OutputPlan> PlanOutput() {
  OutputPlan plan;
  const bool has_out = ::fcntl(STDOUT_FILENO, F_GETFD) >= 0;
  const bool has_err = ::fcntl(STDERR_FILENO, F_GETFD) >= 0;
  const bool together = has_out && has_err && SameOpenFile(STDOUT_FILENO, STDERR_FILENO);
  if (has_out) {
    EPM_ASSIGN(auto channel, OpenChannel(STDOUT_FILENO));
    plan.streams.push_back(
        {.from = channel.first.Release(), .to = STDOUT_FILENO, .stream = together ? 3U : 1U});
    plan.child_stdout = std::move(channel.second);
  }
  if (together) {
    plan.child_stderr = base::UniqueFd(::fcntl(plan.child_stdout.get(), F_DUPFD_CLOEXEC, 3));
  } else if (has_err) {
    EPM_ASSIGN(auto channel, OpenChannel(STDERR_FILENO));
    plan.streams.push_back({.from = channel.first.Release(), .to = STDERR_FILENO, .stream = 2U});
    plan.child_stderr = std::move(channel.second);
  }
  return plan;
}

}  // namespace epochmeter::cli
