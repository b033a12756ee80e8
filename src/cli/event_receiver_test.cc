// SPDX-License-Identifier: Apache-2.0
#include "cli/event_receiver.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"

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

TEST(EventReceiver, DrainOfAFloodEndsAtItsTime) {
  const Ends ends = MakeEnds();
  const auto receiver = EventReceiver::Start(ends.ours.get()).value();
  std::thread flood([fd = ends.theirs.get()] {
    while (::send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
    }
  });
  const int64_t until_ns = base::MonotonicNs() + base::kNsPerSecond / 10;
  uint64_t dropped = 0;
  receiver->Drain(until_ns, &dropped);
  EXPECT_LT(base::MonotonicNs(), until_ns + 5 * base::kNsPerSecond);
  ::shutdown(ends.ours.get(), SHUT_RDWR);
  flood.join();
}

}  // namespace
}  // namespace epochmeter::cli
