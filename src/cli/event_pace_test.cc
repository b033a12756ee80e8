// SPDX-License-Identifier: Apache-2.0
#include "cli/event_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace epochmeter::cli {
namespace {

constexpr int64_t kMs = base::kNsPerSecond / 1000;
constexpr int64_t kLongest = 50 * kMs;

struct Outcome {
  int most_in_queue = 0;  // of the second half
  int looks = 0;
  int wakeups = 0;  // events that found the receiver at the socket
};

// `events` events, one each `gap_ns`, in bursts of `burst`, to a receiver that follows `pace`.
Outcome Play(EventPace& pace, int64_t gap_ns, int events, int burst = 1) {
  Outcome outcome;
  int64_t now_ns = base::kNsPerSecond, rest_ns = 0;
  int queued = 0, sent = 0;
  int64_t look_ns = -1;  // end of the rest; -1: at the socket
  while (sent < events) {
    const int64_t next_ns = base::kNsPerSecond + sent / burst * burst * gap_ns;
    if (look_ns >= 0 && look_ns <= next_ns) {
      now_ns = look_ns;
    } else {
      now_ns = next_ns;
      ++queued, ++sent;
      if (sent % burst != 0 || look_ns >= 0) continue;
      ++outcome.wakeups;
    }
    ++outcome.looks;
    if (sent > events / 2) outcome.most_in_queue = std::max(outcome.most_in_queue, queued);
    rest_ns = pace.RestAfter(std::exchange(queued, 0), now_ns);
    look_ns = rest_ns > 0 ? now_ns + rest_ns : -1;
  }
  return outcome;
}

TEST(EventPace, RegularStepsFindNobodyToWakeAndRoomInTheQueue) {
  for (const int64_t gap_ns : {kMs / 10, kMs, 10 * kMs, 20 * kMs}) {
    for (const int capacity : {10, 64}) {
      EventPace pace(capacity, kLongest);
      const Outcome outcome = Play(pace, gap_ns, 2000);
      EXPECT_LE(outcome.most_in_queue, capacity / 2) << gap_ns << " " << capacity;
      EXPECT_LT(outcome.wakeups, 2000 / 50) << gap_ns << " " << capacity;
      EXPECT_LT(outcome.looks, 2000 * 2 / 3) << gap_ns << " " << capacity;
    }
  }
}

TEST(EventPace, RareStepsAreWaitedFor) {
  EventPace pace(10, kLongest);
  const Outcome outcome = Play(pace, 300 * kMs, 100);
  EXPECT_EQ(outcome.wakeups, 100);
  EXPECT_EQ(outcome.looks, 100);
}

TEST(EventPace, BurstsThatNearlyFillTheQueueAreWaitedFor) {
  EventPace pace(10, kLongest);
  const Outcome outcome = Play(pace, 2 * kMs, 4000, 8);  // eight ranks in step
  EXPECT_GT(outcome.wakeups, 4000 / 8 * 9 / 10);
  EXPECT_LE(outcome.most_in_queue, 8);
}

TEST(EventPace, FloodGetsNoRest) {
  EventPace pace(10, kLongest);
  EXPECT_EQ(pace.RestAfter(1, base::kNsPerSecond), 0);
  EXPECT_EQ(pace.RestAfter(256, base::kNsPerSecond + kMs), 0);
  EXPECT_EQ(pace.RestAfter(1, base::kNsPerSecond + 2 * kMs), 0);
}

TEST(EventPace, RestsAgainSoonAfterAPause) {
  EventPace pace(10, kLongest);
  Play(pace, 5 * kMs, 100);
  int64_t now_ns = 1000 * base::kNsPerSecond;
  int without = 0;
  for (; pace.RestAfter(1, now_ns) == 0; now_ns += 5 * kMs) ++without;
  EXPECT_LE(without, 10);
}

TEST(EventPace, NothingIsPutOffLongerThanAllowed) {
  EventPace pace(64, 2 * kMs);
  int64_t now_ns = base::kNsPerSecond;
  for (int i = 0; i < 1000; ++i) {
    const int64_t rest_ns = pace.RestAfter(1 + i % 3, now_ns);
    EXPECT_LE(rest_ns, 2 * kMs);
    now_ns += rest_ns > 0 ? rest_ns : kMs / 3;
  }
}

}  // namespace
}  // namespace epochmeter::cli
