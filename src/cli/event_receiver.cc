// SPDX-License-Identifier: Apache-2.0
#include "cli/event_receiver.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {
namespace {

constexpr size_t kLongestDatagram = 8192 + 1;  // one more than allowed, to see that it is too long
// Between two looks at whether to stop or whom to wake: a flood never ends by itself.
constexpr int kMostATurn = 256;
constexpr size_t kMaxWaitingBytes = size_t{16} << 20;

class ThreadedReceiver : public EventReceiver {
 public:
  ThreadedReceiver(int socket_fd, base::UniqueFd wake, base::UniqueFd stop)
      : socket_fd_(socket_fd), wake_(std::move(wake)), stop_(std::move(stop)) {}
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
    for (;;) {
      pollfd polls[2] = {{.fd = socket_fd_, .events = POLLIN, .revents = 0},
                         {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
      if (::poll(polls, 2, -1) < 0 && errno != EINTR) return;
      if (polls[1].revents != 0) return;
      int received = 0;
      while (received < kMostATurn && ReceiveOne()) ++received;
      if (received == 0) continue;
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
    }
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
    waiting_bytes_ += datagram.bytes.size() + sizeof(Datagram);
    waiting_.push_back(std::move(datagram));
  }

  int socket_fd_;
  base::UniqueFd wake_, stop_;
  std::mutex mutex_;  // guards the three below
  std::vector<Datagram> waiting_;
  size_t waiting_bytes_ = 0;
  uint64_t dropped_ = 0;
  std::thread thread_;
};

}  // namespace

base::Result<std::unique_ptr<EventReceiver>> EventReceiver::Start(int socket_fd) {
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  base::UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid() || !stop.valid()) return base::SystemError("cannot make", "eventfd", errno);
  auto receiver = std::make_unique<ThreadedReceiver>(socket_fd, std::move(wake), std::move(stop));
  EPM_TRY(receiver->Start());
  return std::unique_ptr<EventReceiver>(std::move(receiver));
}

}  // namespace epochmeter::cli
