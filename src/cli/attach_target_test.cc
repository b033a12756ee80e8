// SPDX-License-Identifier: Apache-2.0
#include "cli/attach_target.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace epochmeter::cli {
namespace {

TEST(AttachTargetTest, AnotherProcessWithThePidIsNotTakenForIt) {
  const base::Result<AttachTarget> self = LookAtTarget(::getpid());
  ASSERT_TRUE(self.ok()) << self.error().Message();
  EXPECT_TRUE(StillRuns(::getpid(), self->start_ticks));
  EXPECT_FALSE(StillRuns(::getpid(), self->start_ticks + 1));
}

TEST(AttachTargetTest, AProcessThatHasEndedDoesNotRunThoughItsPidIsTaken) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  const base::Result<AttachTarget> target = LookAtTarget(child);
  ASSERT_TRUE(target.ok());
  EXPECT_TRUE(target->limits.empty());
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(StillRuns(child, target->start_ticks));
  EXPECT_FALSE(LookAtTarget(child).ok());
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(LookAtTarget(child).ok());
}

TEST(AttachTargetTest, NobodyRecordsThisTest) {
  EXPECT_FALSE(FindRecordingOf(::getpid()).has_value());
}

}  // namespace
}  // namespace epochmeter::cli
