// SPDX-License-Identifier: Apache-2.0
#include "cli/event_receiver.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "cli/recorder.h"

namespace epochmeter::cli {
namespace {

struct Ends {
  base::UniqueFd ours, theirs;
};

Ends MakeEnds() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
  return {.ours = base::UniqueFd(fds[0]), .theirs = base::UniqueFd(fds[1])};
}

TEST(EventReceiver, NothingIsLostWhileItsOwnerDoesSomethingElse) {
  const Ends ends = MakeEnds();
  const auto receiver = EventReceiver::Start(ends.ours.get()).value();
  constexpr size_t kSent = 20'000;  // far more than the socket holds
  for (size_t i = 0; i < kSent; ++i) {
    const std::string text = std::to_string(i);
    ASSERT_GT(::send(ends.theirs.get(), text.data(), text.size(), 0), 0);
  }
  uint64_t dropped = 0;
  const auto found = receiver->Drain(base::MonotonicNs() + 10 * base::kNsPerSecond, &dropped);
  ASSERT_EQ(found.size(), kSent);
  EXPECT_EQ(found.back().bytes, std::to_string(kSent - 1));
  EXPECT_EQ(dropped, 0U);
}

class BoundReceiver : public ::testing::Test {
 protected:
  BoundReceiver() {
    std::string folder = "/tmp/epmXXXXXX";
    folder_ = ::mkdtemp(folder.data());
    address_.sun_family = AF_UNIX;
    (folder_ + "/s").copy(address_.sun_path, sizeof address_.sun_path - 1);
    ours_ = BindEventSocket(folder_ + "/s").value();
    theirs_ = base::UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(
        ::connect(theirs_.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_), 0);
  }
  ~BoundReceiver() override {
    ::unlink(address_.sun_path);
    ::rmdir(folder_.c_str());
  }
  // Waits for room: the receiver's thread may not get a core at once.
  void Send() const {
    pollfd room{.fd = theirs_.get(), .events = POLLOUT, .revents = 0};
    while (::send(theirs_.get(), "x", 1, 0) != 1) ASSERT_EQ(::poll(&room, 1, 10'000), 1);
  }
  // Steady steps, between which the receiver comes to rest.
  void SendSteps(int count) const {
    for (int i = 0; i < count; ++i) {
      Send();
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
  }
  bool Ring() const {
    sockaddr_un bell{};
    bell.sun_family = AF_UNIX;
    const size_t length = ::strlen(address_.sun_path);
    std::memcpy(bell.sun_path + 1, address_.sun_path, length);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    return ::sendto(theirs_.get(), "", 0, 0, reinterpret_cast<const sockaddr*>(&bell), size) == 0;
  }

  std::string folder_;
  sockaddr_un address_{};
  base::UniqueFd ours_, theirs_;
};

TEST_F(BoundReceiver, RestsBetweenSteadyStepsAndComesWhenTheBellRings) {
  const auto receiver = EventReceiver::Start(ours_.get()).value();
  SendSteps(100);
  uint64_t dropped = 0;
  receiver->Take(&dropped);
  int rested = 0;
  int64_t longest_ns = 0;
  constexpr int kMostRings = 100;  // where a core is hard to get
  for (int i = 0; i < kMostRings && (i < 3 || rested == 0); ++i) {
    SendSteps(10);
    receiver->Take(&dropped);
    Send();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    rested += receiver->Take(&dropped).empty() ? 1 : 0;
    Send();
    EXPECT_TRUE(Ring());
    const int64_t rang_ns = base::MonotonicNs();
    pollfd woken{.fd = receiver->wake_fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&woken, 1, 10'000), 1);
    longest_ns = std::max(longest_ns, base::MonotonicNs() - rang_ns);
    EXPECT_FALSE(receiver->Take(&dropped).empty());
  }
  EXPECT_GT(rested, 0);
  EXPECT_LT(longest_ns, base::kNsPerSecond);
  EXPECT_EQ(dropped, 0U);
}

TEST_F(BoundReceiver, RestDelaysNoEnd) {
  auto receiver = EventReceiver::Start(ours_.get()).value();
  SendSteps(100);
  Send();
  uint64_t dropped = 0;
  size_t taken = receiver->Drain(base::MonotonicNs() + base::kNsPerSecond, &dropped).size();
  EXPECT_EQ(taken, 101U);
}

TEST_F(BoundReceiver, TakesEventsWhileSomebodyRingsWithoutEnd) {
  const auto receiver = EventReceiver::Start(ours_.get()).value();
  std::atomic<bool> enough = false;
  std::thread rings([&] {
    while (!enough) Ring();
  });
  uint64_t dropped = 0;
  size_t taken = 0;
  for (int i = 0; i < 20; ++i) {
    Send();
    pollfd woken{.fd = receiver->wake_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&woken, 1, 10'000), 1);
    taken += receiver->Take(&dropped).size();
  }
  enough = true;
  rings.join();
  EXPECT_EQ(taken, 20U);
}

TEST(EventReceiver, DrainOfAFloodEndsAtItsTime) {
  const Ends ends = MakeEnds();
  const auto receiver = EventReceiver::Start(ends.ours.get()).value();
  std::atomic<bool> enough = false;
  std::thread flood([&enough, fd = ends.theirs.get()] {
    while (!enough) ::send(fd, "x", 1, MSG_DONTWAIT);
  });
  const int64_t until_ns = base::MonotonicNs() + base::kNsPerSecond / 10;
  uint64_t dropped = 0;
  receiver->Drain(until_ns, &dropped);
  EXPECT_LT(base::MonotonicNs(), until_ns + 5 * base::kNsPerSecond);
  enough = true;
  flood.join();
}

}  // namespace
}  // namespace epochmeter::cli
