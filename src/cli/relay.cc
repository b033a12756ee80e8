// SPDX-License-Identifier: Apache-2.0
#include "cli/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "cli/messages.h"

namespace epochmeter::cli {
namespace {

// What the threads of a relay share.
struct Shared {
  RelayChannels channels;
  std::vector<RelayStream> streams;  // for window sizes; each thread closes its own `from` only
  std::atomic<size_t> drained = 0;
};

// Passes one stream on, on a thread of its own: a reader that takes nothing from stdout must not
// hold stderr as well.
class StreamRelay {
 public:
  StreamRelay(Shared& shared, size_t index, base::UniqueFd window_changes)
      : shared_(shared),
        stream_(shared.streams[index]),
        index_(index),
        window_changes_(std::move(window_changes)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;  // then tee fails and bytes are copied
    copy_out_ = base::UniqueFd(ends[0]);
    copy_in_ = base::UniqueFd(ends[1]);
  }

  void Run() {
    while (stream_.from >= 0) {
      if (Wait()) {
        Pass();
      } else if (training_ended_) {
        Answer();
      }
    }
    Answer();
  }

 private:
  // Waits for output, or for the training's end; true when there is output. After the end it only
  // looks whether more is there, answers, and waits again: grandchildren may hold the pipe for
  // long.
  bool Wait() {
    pollfd polls[3] = {
        {.fd = stream_.from, .events = POLLIN, .revents = 0},
        {.fd = training_ended_ ? -1 : shared_.channels.control, .events = POLLIN, .revents = 0},
        {.fd = window_changes_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(polls, 3, training_ended_ && !answered_ ? 0 : -1) < 0) return false;
    if (polls[1].revents != 0) training_ended_ = true;
    if (polls[2].revents != 0) CopyWindowSizes();
    return polls[0].revents != 0;
  }

  void Pass() {
    if (Move()) return;
    const ssize_t n = ::read(stream_.from, Bytes(), kCaptureBytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {  // a pty whose last writer is gone reads as EIO
      ::close(std::exchange(stream_.from, -1));
      return;
    }
    Deliver(Bytes(), static_cast<size_t>(n));
    Copy(static_cast<size_t>(n));
  }

  // Passes on without taking the bytes into this process: they leave the pipe in the moment in
  // which they reach their destination, so that a relay killed at any instant loses and repeats
  // nothing. False when source or destination can't do that (terminals, files opened for
  // appending).
  bool Move() {
    const ssize_t copied = ::tee(stream_.from, copy_in_.get(), kCaptureBytes, SPLICE_F_NONBLOCK);
    if (copied <= 0) return copied < 0 && (errno == EAGAIN || errno == EINTR);
    auto left = static_cast<size_t>(copied);
    while (left > 0) {
      const ssize_t n = ::splice(stream_.from, nullptr, stream_.to, nullptr, left, 0);
      if (n > 0) {
        left -= static_cast<size_t>(n);
      } else if (n < 0 && errno == EAGAIN) {
        AwaitRoom();
      } else if (n == 0 || errno != EINTR) {
        break;  // this destination wants write(2), or fails: Deliver tells which
      }
    }
    const ssize_t n = ::read(copy_out_.get(), Bytes(), static_cast<size_t>(copied));
    if (n != copied) return true;
    if (left > 0) FinishByCopy(Bytes() + (static_cast<size_t>(copied) - left), left);
    Copy(static_cast<size_t>(copied));
    return true;
  }

  // Writes what could not be spliced, then takes it out of the pipe.
  void FinishByCopy(const char* bytes, size_t size) {
    Deliver(bytes, size);
    char scrap[4096];
    while (size > 0 && stream_.from >= 0) {
      const ssize_t n = ::read(stream_.from, scrap, std::min(size, sizeof scrap));
      if (n > 0) size -= static_cast<size_t>(n);
      if (n == 0 || (n < 0 && errno != EINTR)) return;
    }
  }

  // A reader that went away closes the source, so that the training learns it. Any other failure (a
  // full disk) costs these bytes, which are counted; the training goes on.
  void Deliver(const char* bytes, size_t size) {
    while (size > 0) {
      const ssize_t n = ::write(stream_.to, bytes, size);
      if (n > 0) {
        bytes += n;
        size -= static_cast<size_t>(n);
      } else if (n < 0 && errno == EAGAIN) {
        AwaitRoom();
      } else if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
        ::close(std::exchange(stream_.from, -1));
        Tell(static_cast<char>(kRelayStreamClosed + index_));
        return;
      } else if (n < 0 && errno != EINTR) {
        not_written_bytes_ += size;
        return;
      }
    }
  }

  void AwaitRoom() const {
    pollfd writable{.fd = stream_.to, .events = POLLOUT, .revents = 0};
    ::poll(&writable, 1, -1);
  }

  void Copy(size_t size) {
    const CaptureHeader header{.t_ns = base::MonotonicNs(),
                               .dropped_bytes = dropped_bytes_,
                               .not_written_bytes = not_written_bytes_,
                               .stream = stream_.stream,
                               .padding = 0};
    std::memcpy(payload_, &header, sizeof header);
    const ssize_t n = ::send(shared_.channels.capture, payload_, sizeof header + size,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    dropped_bytes_ = n < 0 ? dropped_bytes_ + size : 0;
    not_written_bytes_ = n < 0 ? not_written_bytes_ : 0;
  }

  void CopyWindowSizes() {
    signalfd_siginfo info{};
    while (::read(window_changes_.get(), &info, sizeof info) > 0) {
    }
    for (const RelayStream& stream : shared_.streams) {
      winsize size{};
      if (::ioctl(stream.to, TIOCGWINSZ, &size) == 0) ::ioctl(stream.from, TIOCSWINSZ, &size);
    }
  }

  void Answer() {
    if (std::exchange(answered_, true)) return;
    if (shared_.drained.fetch_add(1) + 1 == shared_.streams.size()) Tell(kRelayDrained);
  }

  void Tell(char message) {
    [[maybe_unused]] const ssize_t n =
        ::send(shared_.channels.control, &message, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  char* Bytes() { return payload_ + sizeof(CaptureHeader); }

  Shared& shared_;
  RelayStream stream_;
  size_t index_;
  base::UniqueFd window_changes_;      // invalid but in the first thread
  base::UniqueFd copy_out_, copy_in_;  // a pipe that holds the recorder's copy for a moment
  bool training_ended_ = false;
  bool answered_ = false;
  uint64_t dropped_bytes_ = 0;      // of copies, since the last that was sent
  uint64_t not_written_bytes_ = 0;  // of the output itself, likewise
  char payload_[sizeof(CaptureHeader) + kCaptureBytes];
};

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
  sigset_t window;
  sigemptyset(&window);
  sigaddset(&window, SIGWINCH);
  ::sigprocmask(SIG_BLOCK, &window, nullptr);
  base::UniqueFd window_changes(::signalfd(-1, &window, SFD_CLOEXEC | SFD_NONBLOCK));
  Shared shared{.channels = channels, .streams = std::move(streams)};
  std::vector<std::unique_ptr<StreamRelay>> relays;
  for (size_t i = 0; i < shared.streams.size(); ++i) {
    relays.push_back(std::make_unique<StreamRelay>(
        shared, i, base::UniqueFd(i == 0 ? window_changes.Release() : -1)));
  }
  std::vector<std::thread> threads;
  for (size_t i = 1; i < relays.size(); ++i)
    threads.emplace_back([&relays, i] { relays[i]->Run(); });
  if (!relays.empty()) relays[0]->Run();
  for (std::thread& thread : threads) thread.join();
}

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
