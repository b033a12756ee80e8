// SPDX-License-Identifier: Apache-2.0
#include "cli/clock_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace epochmeter::cli {
namespace {

constexpr int64_t kSecond = base::kNsPerSecond;
constexpr int64_t kHour = 3600 * kSecond;

base::ClockAnchor g_clocks;  // what the machine shows

class Collected : public model::Sink {
 public:
  void Write(const model::Record& record) override {
    if (const auto* anchor = std::get_if<model::Anchor>(&record)) anchors.push_back(anchor->clocks);
    if (const auto* event = std::get_if<model::Event>(&record)) events.push_back(*event);
  }
  std::vector<base::ClockAnchor> anchors;
  std::vector<model::Event> events;
};

class ClockWatchTest : public testing::Test {
 protected:
  static base::ClockAnchor Start() {
    g_clocks = {
        .mono_ns = 1000 * kSecond, .boot_ns = 1005 * kSecond, .wall_ns = 1'800'000'000 * kSecond};
    return g_clocks;
  }
  // Lets time pass on all clocks, and looks each second as the recorder does.
  void Run(int64_t seconds, double wall_rate = 1) {
    for (int64_t i = 0; i < seconds; ++i) {
      g_clocks.mono_ns += kSecond;
      g_clocks.boot_ns += kSecond;
      g_clocks.wall_ns += std::llround(static_cast<double>(kSecond) * wall_rate);
      watch_.Maintain(g_clocks.mono_ns);
    }
  }
  static double Number(const model::Event& event) {
    return std::get<double>(event.fields.front().value);
  }
  Collected out_;
  ClockWatch watch_{out_, Start(), [] { return g_clocks; }};
};

TEST_F(ClockWatchTest, SaysNothingOfGoodClocksButAnAnchorEachFiveMinutes) {
  Run(299);
  EXPECT_TRUE(out_.anchors.empty());
  Run(1);
  EXPECT_EQ(out_.anchors.size(), 1U);
  Run(3600);
  EXPECT_EQ(out_.anchors.size(), 13U);
  EXPECT_TRUE(out_.events.empty());
}

TEST_F(ClockWatchTest, TellsAWallClockThatWasSetBySizeAndDirection) {
  for (const int64_t jump_ns : {kHour, -kHour, 25 * kHour, -25 * kHour, kSecond, -kSecond / 5}) {
    out_ = {};
    g_clocks.wall_ns += jump_ns;
    Run(3);
    ASSERT_EQ(out_.events.size(), 1U) << jump_ns;
    EXPECT_EQ(out_.events[0].name, "clock.jumped");
    EXPECT_EQ(out_.events[0].fields[0].key, "by_s");
    EXPECT_NEAR(Number(out_.events[0]), base::SecondsFromNs(jump_ns), 1e-6);
    ASSERT_EQ(out_.anchors.size(), 1U);
    EXPECT_EQ(out_.anchors[0].mono_ns, out_.events[0].t_ns);
  }
}

TEST_F(ClockWatchTest, TellsAWallClockThatWentTo1970AndBack) {
  const int64_t right_ns = g_clocks.wall_ns;
  g_clocks.wall_ns = 0;
  Run(2);
  g_clocks.wall_ns += right_ns;
  Run(2);
  ASSERT_EQ(out_.events.size(), 2U);
  EXPECT_NEAR(Number(out_.events[0]), -base::SecondsFromNs(right_ns), 1e-6);
  EXPECT_NEAR(Number(out_.events[1]), base::SecondsFromNs(right_ns), 1e-6);
}

// The leap second smeared over five minutes: no step, and no wall time is off by more than the
// tolerance and what one look misses.
TEST_F(ClockWatchTest, FollowsASmearedClockWithoutCallingItAJump) {
  Run(300, 1 + 1.0 / 300);
  EXPECT_TRUE(out_.events.empty());
  EXPECT_GT(out_.anchors.size(), 50U);
  EXPECT_LT(out_.anchors.size(), 110U);
  const base::ClockAnchor& last = out_.anchors.back();
  const int64_t believed_ns = last.wall_ns + (g_clocks.mono_ns - last.mono_ns);
  EXPECT_LT(std::abs(believed_ns - g_clocks.wall_ns), ClockWatch::kToleranceNs + kSecond / 300);
}

TEST_F(ClockWatchTest, TellsASuspendAndNotTheWallClockThatWentOn) {
  g_clocks.boot_ns += 2 * kHour;
  g_clocks.wall_ns += 2 * kHour;
  Run(2);
  ASSERT_EQ(out_.events.size(), 1U);
  EXPECT_EQ(out_.events[0].name, "clock.suspended");
  EXPECT_NEAR(Number(out_.events[0]), 7200, 1e-6);
  EXPECT_EQ(out_.anchors.size(), 1U);
}

TEST_F(ClockWatchTest, TellsBothWhereTheClockWasSetInTheSleep) {
  g_clocks.boot_ns += 2 * kHour;
  g_clocks.wall_ns += 3 * kHour;
  Run(2);
  ASSERT_EQ(out_.events.size(), 2U);
  EXPECT_EQ(out_.events[1].name, "clock.jumped");
  EXPECT_NEAR(Number(out_.events[1]), 3600, 1e-6);
}

TEST_F(ClockWatchTest, TellsThatTheRecorderItselfDidNotRun) {
  g_clocks.mono_ns += 6 * kSecond;
  g_clocks.boot_ns += 6 * kSecond;
  g_clocks.wall_ns += 6 * kSecond;
  Run(3);
  ASSERT_EQ(out_.events.size(), 1U);
  EXPECT_EQ(out_.events[0].name, "recorder.paused");
  EXPECT_NEAR(Number(out_.events[0]), 6, 0.5);
}

TEST_F(ClockWatchTest, SeesAJumpInALookOutOfTurn) {
  g_clocks.wall_ns += kHour;
  watch_.Maintain(g_clocks.mono_ns + 1);
  EXPECT_TRUE(out_.events.empty()) << "not due";
  watch_.Look();
  EXPECT_EQ(out_.events.size(), 1U);
}

}  // namespace
}  // namespace epochmeter::cli
