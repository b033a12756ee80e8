// SPDX-License-Identifier: Apache-2.0
#include "collect/pid_namespace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "collect/source_test_util.h"

namespace epochmeter::collect {
namespace {

using testing::HasSubstr;

// A /proc of a container (this process is 7, the training 5) and one of its host, where they are
// 4107 and 4105.
class PidNamespaceTest : public testing::Test {
 protected:
  PidNamespaceTest() {
    Process(inside_, 7, "7", 700);
    Process(inside_, 5, "5", 500);
    Link(inside_, "self", "7");
    Link(inside_, "7/ns/pid", "pid:[4026532178]");
    Process(host_, 4107, "4107 7", 700);
    Process(host_, 4105, "4105 5", 500);
    host_.Write("2/comm", "kthreadd\n");
    Link(host_, "self", "4107");
  }

  static void Process(const TempFolder& proc, int pid, const std::string& ns_pids, int start) {
    const std::string folder = std::to_string(pid);
    proc.Write(folder + "/stat", folder + " (python3) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 " +
                                     std::to_string(start) + " 0 0\n");
    proc.Write(folder + "/status", "Name:\tpython3\nNSpid:\t" + ns_pids + "\nThreads:\t1\n");
  }
  static void Link(const TempFolder& proc, const std::string& name, const std::string& target) {
    const std::filesystem::path path = std::filesystem::path(proc.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(target, path);
  }

  InitialProc Find(const std::string& host_proc) const {
    return FindInitialProc(inside_.path(), host_proc, 5, 7);
  }

  TempFolder inside_, host_;
};

TEST_F(PidNamespaceTest, InTheInitialNamespaceOurProcIsTheOne) {
  TempFolder proc;
  Process(proc, 7, "7", 700);
  Link(proc, "self", "7");
  Link(proc, "7/ns/pid", "pid:[4026531836]");
  const InitialProc found = FindInitialProc(proc.path(), "", 5, 7);
  EXPECT_EQ(found.root, proc.path());
  EXPECT_EQ(found.training_pid, 5);
}

TEST_F(PidNamespaceTest, InAContainerNothingIsKnownAndItSaysWhatToDo) {
  const InitialProc found = Find("");
  EXPECT_FALSE(found.known());
  EXPECT_TRUE(found.proc_is_ours);
  EXPECT_THAT(found.why_not, HasSubstr("--pid=host"));
}

TEST_F(PidNamespaceTest, AMountedHostProcTranslatesTheTraining) {
  const InitialProc found = Find(host_.path());
  EXPECT_EQ(found.root, host_.path());
  EXPECT_EQ(found.training_pid, 4105);
}

TEST_F(PidNamespaceTest, TheStartTellsContainersWithEqualPidsApart) {
  Process(host_, 9005, "9005 5", 123);
  EXPECT_EQ(Find(host_.path()).training_pid, 4105);
  Process(host_, 9006, "9006 5", 500);  // as old, too: nothing tells them apart
  EXPECT_FALSE(Find(host_.path()).known());
}

TEST_F(PidNamespaceTest, AProcOfAnotherContainerIsNotTheHosts) {
  host_.Write("2/comm", "bash\n");
  EXPECT_THAT(Find(host_.path()).why_not, HasSubstr("is not the host's /proc"));
}

TEST_F(PidNamespaceTest, AHostProcThatDoesNotShowThisProcessIsNotUsed) {
  Process(host_, 4107, "4107", 700);  // a kernel without NSpid columns, or another machine's
  EXPECT_THAT(Find(host_.path()).why_not, HasSubstr("NSpid"));
}

TEST_F(PidNamespaceTest, UnderTheOuterProcOurOwnNumbersAreNotUsed) {
  // A new pid namespace without a /proc of its own: /proc is still the host's.
  const InitialProc found = FindInitialProc(host_.path(), "", 5, 7);
  EXPECT_EQ(found.root, host_.path());
  EXPECT_EQ(found.training_pid, 4105);
  EXPECT_FALSE(found.proc_is_ours);
}

}  // namespace
}  // namespace epochmeter::collect
