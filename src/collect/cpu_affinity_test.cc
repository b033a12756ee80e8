// SPDX-License-Identifier: Apache-2.0
#include "collect/cpu_affinity.h"

#include <gtest/gtest.h>

#include "collect/source_test_util.h"

namespace epochmeter::collect {
namespace {

TEST(CpuList, IsReadAndWrittenAsTheKernelDoes) {
  EXPECT_EQ(ParseCpuList("0-2,8\n"), (CpuSet{0, 1, 2, 8}));
  EXPECT_EQ(FormatCpuList({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
  EXPECT_FALSE(ParseCpuList(""));
  EXPECT_FALSE(ParseCpuList("4-2"));
  EXPECT_FALSE(ParseCpuList("0-999999999"));
}

class TrainingCpusTest : public testing::Test {
 protected:
  void Thread(int32_t pid, int32_t tid, const std::string& cpus, const std::string& children = "") {
    const std::string task = std::to_string(pid) + "/task/" + std::to_string(tid);
    proc_.Write(task + "/status", "Name:\tx\nCpus_allowed_list:\t" + cpus + "\n");
    proc_.Write(task + "/children", children);
  }
  std::optional<CpuSet> Cpus(int32_t pid) {
    return TrainingCpus({.proc_root = proc_.path(), .sys_root = "/nowhere"}, pid);
  }
  TempFolder proc_;
};

TEST_F(TrainingCpusTest, AreThoseOfAllThreadsAndDescendants) {
  proc_.Write("100/comm", "python\n");
  Thread(100, 100, "0");
  Thread(100, 105, "1", "110 ");
  Thread(110, 110, "4-5");
  EXPECT_EQ(Cpus(100), (CpuSet{0, 1, 4, 5}));
  EXPECT_FALSE(Cpus(999));
}

TEST_F(TrainingCpusTest, DoNotCountAShellThatOnlyWaits) {
  proc_.Write("100/comm", "bash\n");
  Thread(100, 100, "0-63", "101 ");
  Thread(101, 101, "8-15");
  EXPECT_EQ(Cpus(100)->size(), 8U);
}

TEST(CpusLeftFree, AreNoneUnlessTheTrainingIsConfined) {
  EXPECT_EQ(CpusLeftFree({0, 1, 2, 3}, {0, 1}), (CpuSet{2, 3}));
  EXPECT_TRUE(CpusLeftFree({0, 1}, {0, 1, 2, 3}).empty());
  EXPECT_TRUE(CpusLeftFree({0, 1}, {0, 1}).empty());
}

}  // namespace
}  // namespace epochmeter::collect
