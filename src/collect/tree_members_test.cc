// SPDX-License-Identifier: Apache-2.0
#include "collect/tree_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "collect/fake_proc.h"

namespace epochmeter::collect {
namespace {

std::vector<int32_t> Members(const TreeMembers& tree) {
  std::vector<int32_t> pids;
  for (const ProcStat& stat : tree.members()) pids.push_back(stat.key.pid);
  return pids;
}

class TreeMembersTest : public testing::Test {
 protected:
  void SetUp() override {
    proc_.Put({.pid = 1, .parent = 0});
    proc_.Put({.pid = 50, .parent = 1, .group = 50, .session = 50});   // a shell
    proc_.Put({.pid = 60, .parent = 50, .group = 60, .session = 50});  // its other job
    proc_.Put({.pid = 100, .parent = 50, .group = 100, .session = 50});
    proc_.Put({.pid = 90, .parent = 101, .group = 100, .session = 50});  // before its parent
    proc_.Put({.pid = 101, .parent = 100, .group = 100, .session = 50});
  }
  TreeMembers Tree(std::vector<int32_t> excluded = {}) {
    auto made = TreeMembers::Make(proc_.folder().path(), 100, excluded);
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }
  std::vector<int32_t> Scan(TreeMembers& tree) {
    EXPECT_TRUE(tree.Scan().ok());
    return Members(tree);
  }
  FakeProc proc_;
};

TEST_F(TreeMembersTest, TakesDescendantsButNotTheSession) {
  TreeMembers tree = Tree();
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101}));
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101}));
}

TEST_F(TreeMembersTest, KeepsAMemberThatIsHandedToInit) {
  TreeMembers tree = Tree();
  Scan(tree);
  proc_.End(101);
  proc_.Put({.pid = 90, .parent = 1, .group = 90, .session = 90});
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100}));
  proc_.Put({.pid = 95, .parent = 1, .group = 95, .session = 90});  // in a member's session
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 95, 100}));
  proc_.End(90);
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{95, 100}));
  proc_.Put({.pid = 96, .parent = 1, .group = 96, .session = 90});  // its founder has ended
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{95, 96, 100}));
}

TEST_F(TreeMembersTest, FindsADaemonByTheRunIdInItsEnvironment) {
  proc_.Environ(100, "EPOCHMETER_RUN_ID", "r1");
  TreeMembers tree = Tree();
  Scan(tree);
  proc_.Put({.pid = 200, .parent = 1, .group = 200, .session = 200});
  proc_.Environ(200, "EPOCHMETER_RUN_ID", "r1");
  proc_.Put({.pid = 201, .parent = 200, .group = 200, .session = 200});
  proc_.Put({.pid = 202, .parent = 1, .group = 202, .session = 202});
  proc_.Environ(202, "EPOCHMETER_RUN_ID", "r12");  // another run
  proc_.Put({.pid = 203, .parent = 1, .group = 203, .session = 203, .start = 400});
  proc_.Environ(203, "EPOCHMETER_RUN_ID", "r1");  // older than the root
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101, 200, 201}));
}

TEST_F(TreeMembersTest, LeavesOutOurOwnProcessesThoughTheTrainingStartedThem) {
  proc_.Environ(100, "EPOCHMETER_RUN_ID", "r1");
  for (const int32_t pid : {300, 301}) proc_.Environ(pid, "EPOCHMETER_RUN_ID", "r1");
  proc_.Put({.pid = 301, .parent = 302, .group = 100, .session = 50});  // the sampler
  proc_.Put({.pid = 302, .parent = 100, .group = 100, .session = 50});  // the recorder
  TreeMembers tree = Tree({302});
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101}));
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101}));
}

TEST_F(TreeMembersTest, FollowsACgroupThatIsTheJobsOwn) {
  TempFolder cgroup;
  const std::string file = cgroup.path() + "/cgroup.procs";
  proc_.Put({.pid = 70, .parent = 50, .group = 70, .session = 50});
  proc_.Program(70, "/bin/epochmeter", "run");  // the launcher, a process of ours
  proc_.folder().Write("self/x", "");
  std::filesystem::create_symlink("/bin/epochmeter", proc_.folder().path() + "/self/exe");
  cgroup.Write("cgroup.procs", "70\n90\n100\n101\n");
  TreeMembers tree = Tree();
  Scan(tree);
  tree.FollowCgroup(file);
  proc_.Put({.pid = 300, .parent = 1, .group = 300, .session = 300});  // no relation but the cgroup
  cgroup.Write("cgroup.procs", "70\n90\n100\n101\n300\n");
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101, 300}));
}

TEST_F(TreeMembersTest, DoesNotFollowACgroupThatOthersAreIn) {
  TempFolder cgroup;
  cgroup.Write("cgroup.procs", "60\n90\n100\n101\n");
  TreeMembers tree = Tree();
  Scan(tree);
  tree.FollowCgroup(cgroup.path() + "/cgroup.procs");
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101}));
}

TEST_F(TreeMembersTest, TakesAnOrphanThatOurLauncherWasHanded) {
  proc_.Put({.pid = 70, .parent = 50, .group = 70, .session = 50});
  proc_.Program(70, "/bin/epochmeter", "run");
  proc_.Put({.pid = 71, .parent = 70, .group = 70, .session = 50});
  proc_.Program(71, "/bin/epochmeter", "relay");
  proc_.folder().Write("self/x", "");
  std::filesystem::create_symlink("/bin/epochmeter", proc_.folder().path() + "/self/exe");
  proc_.Put({.pid = 100, .parent = 70, .group = 100, .session = 50});
  TreeMembers tree = Tree();
  proc_.Put({.pid = 310, .parent = 70, .group = 310, .session = 310, .start = 900});
  proc_.Program(310, "/usr/bin/python3", "daemon.py");
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101, 310}));
}

TEST_F(TreeMembersTest, APidUsedAgainIsNoMember) {
  TreeMembers tree = Tree();
  Scan(tree);
  proc_.End(90);
  proc_.Put({.pid = 90, .parent = 1, .group = 90, .session = 90, .start = 9999});
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{100, 101}));
  proc_.End(100);
  proc_.Put({.pid = 100, .parent = 1, .group = 100, .session = 100, .start = 9999});
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{101}));
}

TEST_F(TreeMembersTest, AnOutsidersPidMayComeBackAsAMember) {
  TreeMembers tree = Tree();
  Scan(tree);
  proc_.End(60);
  proc_.Put({.pid = 60, .parent = 100, .group = 100, .session = 50, .start = 9999});
  std::vector<int32_t> members;
  // At the latest when every outsider is read again.
  for (int i = 0; i < 64; ++i) members = Scan(tree);
  EXPECT_EQ(members, (std::vector<int32_t>{60, 90, 100, 101}));
}

TEST_F(TreeMembersTest, SurvivesProcessesThatVanishOrAreCutShort) {
  proc_.folder().Write("102/stat", "");
  proc_.folder().Write("103/stat", "103 (x) S 100 100");
  proc_.folder().Write("104/other", "");
  TreeMembers tree = Tree();
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101}));
}

TEST_F(TreeMembersTest, SaysWhenTheRootCannotBeSeen) {
  const auto made = TreeMembers::Make(proc_.folder().path(), 4711, {});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().Message(), testing::HasSubstr("4711"));
}

TEST_F(TreeMembersTest, ARefreshReadsTheMembersThatWereFoundAndNoOthers) {
  TreeMembers tree = Tree();
  Scan(tree);
  proc_.Put({.pid = 101, .parent = 100, .group = 100, .session = 50, .user = 700});
  proc_.Put({.pid = 102, .parent = 100, .group = 100, .session = 50});
  tree.Refresh();
  EXPECT_EQ(Members(tree), (std::vector<int32_t>{90, 100, 101}));
  EXPECT_EQ(tree.members()[2].cpu_ticks, 700U);
  EXPECT_EQ(Scan(tree), (std::vector<int32_t>{90, 100, 101, 102}));
}

size_t OpenFiles() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST(TreeMembers, ARealProcessThatHasEndedIsNoMemberAfterARefreshAndLeavesNoFileOpen) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // a machine's own reaper may take seconds
  const pid_t root = ::fork();
  if (root == 0) {
    const pid_t child = ::fork();
    for (;;) ::pause();
    ::_exit(child);
  }
  auto tree = TreeMembers::Make("/proc", root, {});
  ASSERT_TRUE(tree.ok());
  const size_t open = OpenFiles();
  std::string text;
  for (int i = 0; i < 500 && tree->members().size() < 2; ++i) {
    ::usleep(2000);
    ASSERT_TRUE(tree->Scan().ok());
  }
  ASSERT_EQ(tree->members().size(), 2U);
  tree->Refresh();
  for (const ProcStat& stat : tree->members()) EXPECT_EQ(tree->ReadIo(stat.key.pid, text), 0);
  EXPECT_EQ(OpenFiles(), open + 4);
  std::vector<pid_t> killed = {root};  // the child is ours once the root has ended
  for (const ProcStat& stat : tree->members()) {
    ::kill(stat.key.pid, SIGKILL);
    if (stat.key.pid != root) killed.push_back(stat.key.pid);
  }
  for (const pid_t pid : killed) EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  tree->Refresh();
  EXPECT_TRUE(tree->members().empty());
  ASSERT_TRUE(tree->Scan().ok());
  EXPECT_EQ(OpenFiles(), open);
}

TEST(TreeMembers, FindARealDaemonThatWasNeverSeenWithItsParent) {
  const pid_t root = ::fork();
  if (root == 0) {
    ::setenv("EPOCHMETER_RUN_ID", "20260822T101530Z-daemon-3f9c1a", 1);
    ::execl("/bin/sh", "sh", "-c", "setsid -f sleep 30; exec sleep 30", nullptr);
    ::_exit(127);
  }
  std::vector<int32_t> found;
  for (int i = 0; i < 500 && found.size() < 2; ++i) {
    ::usleep(10'000);
    // Made anew each time, so that only the environment can tell. The shell has a child for a
    // moment; the daemon is the one that init or a reaper has.
    auto tree = TreeMembers::Make("/proc", root, {});
    if (!tree.ok() || !tree->Scan().ok()) continue;
    found.clear();
    for (const ProcStat& stat : tree->members()) {
      if (stat.key.pid == root || (stat.parent != root && stat.session == stat.key.pid)) {
        found.push_back(stat.key.pid);
      }
    }
  }
  EXPECT_EQ(found.size(), 2U);
  for (const int32_t pid : found) ::kill(pid, SIGKILL);
  ::kill(root, SIGKILL);
  ::waitpid(root, nullptr, 0);
}

}  // namespace
}  // namespace epochmeter::collect
