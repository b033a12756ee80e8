// SPDX-License-Identifier: Apache-2.0
#include "cli/event_receiver.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "cli/event_bell.h"
#include "cli/event_pace.h"

namespace epochmeter::cli {
namespace {

constexpr size_t kLongestDatagram = 8192 + 1;  // one more than allowed, to see that it is too long
// Between two looks at whether to stop or whom to wake: a flood never ends by itself.
constexpr int kMostATurn = 256;
constexpr size_t kMaxWaitingBytes = size_t{16} << 20;
// How long an event may stay in the socket; the second also where nobody can ring.
constexpr int64_t kLongestRestNs = base::kNsPerSecond / 20;
constexpr int64_t kLongestRestWithoutBellNs = base::kNsPerSecond / 500;
constexpr int64_t kDeafNs = base::kNsPerSecond / 1000;

// Datagrams that a socket made in this network namespace holds. More than a few dozen small ones
// stand over the limit of bytes of their sender.
int QueueCapacity() {
  constexpr int64_t kUsual = 10, kMost = 64;
  const auto text = base::ReadFile("/proc/sys/net/unix/max_dgram_qlen");
  const auto found = text.ok() ? base::ParseInt(base::Trim(*text)) : std::nullopt;
  return static_cast<int>(std::clamp<int64_t>(found.value_or(kUsual), 1, kMost));
}

class ThreadedReceiver : public EventReceiver {
 public:
  ThreadedReceiver(int socket_fd, RecorderWords* words, base::UniqueFd wake, base::UniqueFd stop)
      : socket_fd_(socket_fd), words_(words), wake_(std::move(wake)), stop_(std::move(stop)) {}
  base::Result<> Start() {
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error& error) {
      return base::SystemError("cannot start a thread", "receiver", error.code().value());
    }
    return {};
  }
  ~ThreadedReceiver() override { Stop(); }

  int wake_fd() const override { return wake_.get(); }

  std::vector<Datagram> Take(uint64_t* dropped) override {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
    const std::lock_guard<std::mutex> lock(mutex_);
    *dropped += std::exchange(dropped_, 0);
    waiting_bytes_ = 0;
    return std::exchange(waiting_, {});
  }

  std::vector<Datagram> Drain(int64_t until_ns, uint64_t* dropped) override {
    Stop();
    while (ReceiveOne() && base::MonotonicNs() < until_ns) {
    }
    return Take(dropped);
  }

 private:
  void Stop() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  void Loop() {
    int64_t rest_ns = 0;
    while (Wait(rest_ns)) {
      int received = 0;
      while (received < kMostATurn && ReceiveOne()) ++received;
      rest_ns = pace_.RestAfter(received, base::MonotonicNs());
      if (rang_) rest_ns = std::max(rest_ns, kDeafNs);
      if (received == 0) continue;
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
    }
  }

  // For an event, or for the end of a rest, or for the bell; false when it is time to stop. Who
  // rings without end is heard once each kDeafNs.
  bool Wait(int64_t rest_ns) {
    const timespec timeout{.tv_sec = rest_ns / base::kNsPerSecond,
                           .tv_nsec = rest_ns % base::kNsPerSecond};
    pollfd polls[] = {
        {.fd = stop_.get(), .events = POLLIN, .revents = 0},
        {.fd = rang_ ? -1 : bell_.get(), .events = POLLIN, .revents = 0},
        {.fd = rest_ns > 0 ? -1 : socket_fd_, .events = POLLIN, .revents = 0},
    };
    const bool failed = ::ppoll(polls, 3, rest_ns > 0 ? &timeout : nullptr, nullptr) < 0;
    if (failed && errno != EINTR) return false;
    rang_ = polls[1].revents != 0;
    if (rang_) QuietEventBell(bell_.get());
    return polls[0].revents == 0;
  }

  // False when nothing waits.
  bool ReceiveOne() {
    char buffer[kLongestDatagram];
    char control[CMSG_SPACE(sizeof(ucred))];
    iovec part{.iov_base = buffer, .iov_len = sizeof buffer};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(socket_fd_, &message, MSG_DONTWAIT);
    if (n < 0) return false;
    Keep({.pid = SenderPid(message), .bytes = std::string(buffer, static_cast<size_t>(n))});
    return true;
  }

  static int32_t SenderPid(const msghdr& message) {
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(const_cast<msghdr*>(&message), header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS) continue;
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
      return credentials.pid;
    }
    return 0;
  }

  void Keep(Datagram datagram) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_bytes_ + datagram.bytes.size() > kMaxWaitingBytes) {
      ++dropped_;
      return;
    }
    if (words_ != nullptr) ++words_->events_received;
    waiting_bytes_ += datagram.bytes.size() + sizeof(Datagram);
    waiting_.push_back(std::move(datagram));
  }

  int socket_fd_;
  const base::UniqueFd bell_ = BindEventBell(socket_fd_);
  EventPace pace_{QueueCapacity(), bell_.valid() ? kLongestRestNs : kLongestRestWithoutBellNs};
  bool rang_ = false;  // just now
  RecorderWords* words_;
  base::UniqueFd wake_, stop_;
  std::mutex mutex_;  // guards the three below
  std::vector<Datagram> waiting_;
  size_t waiting_bytes_ = 0;
  uint64_t dropped_ = 0;
  std::thread thread_;
};

}  // namespace

base::Result<std::unique_ptr<EventReceiver>> EventReceiver::Start(int socket_fd,
                                                                  RecorderWords* words) {
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  base::UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid() || !stop.valid()) return base::SystemError("cannot make", "eventfd", errno);
  auto receiver =
      std::make_unique<ThreadedReceiver>(socket_fd, words, std::move(wake), std::move(stop));
  EPM_TRY(receiver->Start());
  return std::unique_ptr<EventReceiver>(std::move(receiver));
}

}  // namespace epochmeter::cli
