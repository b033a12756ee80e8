// SPDX-License-Identifier: Apache-2.0
#include "cli/helper_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "cli/signal_sorter.h"

namespace epochmeter::cli {
namespace {

using base::kNsPerSecond;

// A child that waits for its end, and whether it was killed.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) ::pause();
    }
  }
  ~Child() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  bool WasKilled() {
    int status = 0;
    for (int i = 0; i < 500; ++i) {
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      }
      ::usleep(1000);
    }
    return false;
  }
  bool Runs() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_;
};

TEST(HelperWatchTest, OneThatStandsStillIsEndedAfterAGraceAndTheReplacementTellsIt) {
  Child child;
  HelperWatch watch(HelperKind::kRelay, kNsPerSecond);
  watch.Started(child.pid(), 1, 1);
  watch.Stopped(10, 10);
  watch.EndIfFaulty(11, 10 + HelperWatch::kStoppedGraceNs - 1, 0, 0);
  EXPECT_TRUE(child.Runs());
  watch.EndIfFaulty(2 * kNsPerSecond, 10 + HelperWatch::kStoppedGraceNs, 0, 0);
  EXPECT_TRUE(child.WasKilled());
  watch.Died(SIGKILL, 2 * kNsPerSecond);
  EXPECT_TRUE(watch.waits_for_restart());
  const auto told = watch.Replacement(3 * kNsPerSecond);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->fault, HelperFault::kStopped);
  EXPECT_EQ(told->away_ns, 3 * kNsPerSecond - 10);
  watch.Started(4711, 3 * kNsPerSecond, 1);
  EXPECT_FALSE(watch.Replacement(4 * kNsPerSecond));
}

TEST(HelperWatchTest, OneThatGoesOnInTimeIsLeftAlone) {
  Child child;
  HelperWatch watch(HelperKind::kRelay, kNsPerSecond);
  watch.Started(child.pid(), 1, 1);
  watch.Stopped(10, 10);
  watch.Continued();
  watch.EndIfFaulty(100 * kNsPerSecond, 100 * kNsPerSecond, 0, 0);
  EXPECT_TRUE(child.Runs());
}

TEST(HelperWatchTest, OneWithoutASignOfLifeIsEnded) {
  Child child;
  HelperWatch watch(HelperKind::kRecorder, kNsPerSecond);
  watch.Started(child.pid(), 0, 1);
  watch.EndIfFaulty(1, kNsPerSecond, 5, 10 * kNsPerSecond);
  watch.EndIfFaulty(2, 10 * kNsPerSecond, 5, 10 * kNsPerSecond);
  EXPECT_TRUE(child.Runs());
  watch.EndIfFaulty(3, 11 * kNsPerSecond, 5, 10 * kNsPerSecond);
  EXPECT_TRUE(child.WasKilled());
  watch.Died(SIGKILL, 4);
  EXPECT_EQ(watch.Replacement(5)->fault, HelperFault::kSilent);
}

TEST(HelperWatchTest, EachDeathInARowDoublesTheWaitUpToTheLongest) {
  HelperWatch watch(HelperKind::kRelay, kNsPerSecond);
  int64_t last_ns = 0;
  for (int i = 0; i < 10; ++i) {
    watch.Started(4711, 0, 1);
    watch.Died(SIGKILL, 0);
    EXPECT_GE(watch.WaitNs(0, 1), last_ns);
    last_ns = watch.WaitNs(0, 1);
  }
  EXPECT_EQ(last_ns, kNsPerSecond);
}

TEST(AwakeClockTest, AWaitThatCameBackLateIsNotCounted) {
  AwakeClock clock;
  const int64_t start_ns = clock.now_ns();
  clock.Waited(kNsPerSecond / 4, kNsPerSecond / 4);
  EXPECT_EQ(clock.now_ns() - start_ns, kNsPerSecond / 4);
  clock.Waited(3600 * kNsPerSecond, kNsPerSecond / 4);
  clock.Waited(3600 * kNsPerSecond, -1);
  EXPECT_EQ(clock.now_ns() - start_ns, kNsPerSecond / 4);
}

TEST(SignalSorterTest, ASignalToTheLauncherAloneIsForTheTraining) {
  SignalSorter sorter;
  sorter.Received(SIGTERM, 77, 1000);
  EXPECT_TRUE(sorter.TakeDue(1000).empty());
  EXPECT_EQ(sorter.TakeDue(sorter.NextDueNs()), std::vector<int>{SIGTERM});
  EXPECT_EQ(sorter.NextDueNs(), INT64_MAX);
}

TEST(SignalSorterTest, ASignalToAllProcessesIsNotGivenTwiceWhoeverTellsFirst) {
  SignalSorter sorter;
  sorter.Received(SIGTERM, 77, 1000);
  sorter.SeenByHelper(SIGTERM, 77, 2000);
  sorter.SeenByHelper(SIGUSR1, 77, 3000);
  sorter.Received(SIGUSR1, 77, 4000);
  EXPECT_TRUE(sorter.TakeDue(kNsPerSecond).empty());
}

TEST(SignalSorterTest, AnotherSenderOrAnotherTimeIsAnotherSignal) {
  SignalSorter sorter;
  sorter.SeenByHelper(SIGTERM, 77, 0);
  sorter.Received(SIGTERM, 78, 1000);
  sorter.Received(SIGTERM, 77, kNsPerSecond);
  EXPECT_EQ(sorter.TakeDue(2 * kNsPerSecond).size(), 2U);
}

}  // namespace
}  // namespace epochmeter::cli
