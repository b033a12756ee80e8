// SPDX-License-Identifier: Apache-2.0
#include "collect/tree_roles.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "collect/fake_proc.h"
#include "collect/host_sources.h"

namespace epochmeter::collect {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr int64_t kLaterNs = 20 * base::kNsPerSecond;

std::vector<int32_t> Pids(const std::vector<const ProcStat*>& processes) {
  std::vector<int32_t> pids;
  for (const ProcStat* stat : processes) pids.push_back(stat->key.pid);
  return pids;
}

class TreeRolesTest : public testing::Test {
 protected:
  // A process with a program and, when `rank` is not empty, that rank of torchrun.
  void Put(int32_t pid, int32_t parent, const std::string& program, const std::string& rank = "",
           const std::string& command = "train.py") {
    proc_.Put({.pid = pid, .parent = parent, .start = static_cast<uint64_t>(500 + pid)});
    proc_.Program(pid, program, command);
    std::vector<std::pair<std::string, std::string>> environment;
    if (!rank.empty()) environment = {{"RANK", rank}, {"LOCAL_RANK", rank}};
    proc_.Environment(pid, environment);
  }
  std::vector<RankProcesses> Assign(int64_t t_ns, int32_t root = 100) {
    members_ = proc_.Stats();
    const base::UniqueFd folder(::open(proc_.folder().path().c_str(), O_RDONLY | O_DIRECTORY));
    return roles_.Assign(t_ns, folder.get(), root, members_);
  }
  FakeProc proc_;
  TreeRoles roles_;
  std::vector<ProcStat> members_;
};

TEST_F(TreeRolesTest, GivesEachRankItsWorkers) {
  Put(100, 1, "/usr/bin/python3");  // the launcher
  for (const int32_t rank : {0, 1}) {
    const int32_t main = 110 + 100 * rank;
    Put(main, 100, "/usr/bin/python3", std::to_string(rank));
    Put(main + 1, main, "/usr/bin/python3", std::to_string(rank));
    Put(main + 2, main, "/usr/bin/python3", std::to_string(rank));
    Put(main + 3, main, "/usr/bin/python3", std::to_string(rank),
        "from multiprocessing.resource_tracker import main");
    Put(main + 4, main, "/usr/bin/ptxas", std::to_string(rank));
  }
  const auto ranks = Assign(0);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[0].main->key.pid, 110);
  EXPECT_THAT(Pids(ranks[0].workers), UnorderedElementsAre(111, 112));
  EXPECT_EQ(ranks[1].rank, 1);
  EXPECT_EQ(ranks[1].local_rank, 1);
  EXPECT_EQ(ranks[1].main->key.pid, 210);
  EXPECT_THAT(Pids(ranks[1].workers), UnorderedElementsAre(211, 212));
}

TEST_F(TreeRolesTest, LooksBelowShellsAndBehindAForkServer) {
  Put(100, 1, "/bin/bash", "3", "run.sh");
  Put(101, 100, "/usr/bin/python3", "3");
  Put(102, 101, "/usr/bin/python3", "3", "from multiprocessing.forkserver import main");
  Put(103, 102, "/usr/bin/python3", "3");
  const auto ranks = Assign(0);
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].main->key.pid, 101);
  EXPECT_THAT(Pids(ranks[0].workers), ElementsAre(103));
}

TEST_F(TreeRolesTest, WithoutRanksTheTrainingIsMainOnceItIsClearThatNoneCome) {
  Put(100, 1, "/usr/bin/python3");
  Put(101, 100, "/usr/bin/python3");
  EXPECT_TRUE(Assign(0).empty());
  const auto ranks = Assign(kLaterNs);
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_FALSE(ranks[0].rank);
  EXPECT_EQ(ranks[0].main->key.pid, 100);
  EXPECT_THAT(Pids(ranks[0].workers), ElementsAre(101));
}

TEST_F(TreeRolesTest, ALaunchersOwnRankGivesWayToThatOfItsChildren) {
  proc_.Put({.pid = 100, .parent = 1, .start = 500});
  proc_.Program(100, "/usr/bin/python3", "torchrun");
  proc_.Environment(100, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}});
  proc_.Put({.pid = 101, .parent = 100, .start = 600});
  proc_.Program(101, "/usr/bin/python3", "train.py");
  proc_.Environment(101, {{"SLURM_PROCID", "0"}, {"RANK", "0"}, {"LOCAL_RANK", "0"}});
  const auto torch = Assign(0);
  ASSERT_EQ(torch.size(), 1U);
  EXPECT_EQ(torch[0].main->key.pid, 101);
  // Paddle's launcher takes its node's number from the name that it gives to ranks.
  proc_.Environment(100, {{"PADDLE_TRAINER_ID", "0"}});
  proc_.Environment(101, {{"PADDLE_TRAINER_ID", "0"}, {"PADDLE_LOCAL_RANK", "0"}});
  TreeRoles fresh;
  roles_ = fresh;
  const auto paddle = Assign(0);
  ASSERT_EQ(paddle.size(), 1U);
  EXPECT_EQ(paddle[0].main->key.pid, 101);
}

TEST_F(TreeRolesTest, LooksAgainAtAProcessThatMayNotHaveCalledExecYet) {
  Put(100, 1, "/usr/bin/python3", "0");
  Put(101, 100, "/usr/bin/python3", "0");
  EXPECT_THAT(Pids(Assign(0)[0].workers), ElementsAre(101));
  proc_.Program(101, "/usr/bin/git", "git log");
  EXPECT_TRUE(Assign(kLaterNs)[0].workers.empty());
}

TEST_F(TreeRolesTest, WithoutPermissionThereAreNoRanks) {
  proc_.Put({.pid = 100, .parent = 1});
  const auto ranks = Assign(kLaterNs);
  EXPECT_TRUE(ranks.empty());
}

TEST_F(TreeRolesTest, TheTreeGivesSumsForEachRank) {
  proc_.Put({.pid = 100, .parent = 1, .user = 1000, .rss_pages = 50});
  proc_.Program(100, "/usr/bin/python3", "train.py");
  proc_.Environment(100, {{"RANK", "2"}});
  for (const int32_t pid : {101, 102}) {
    proc_.Put({.pid = pid,
               .parent = 100,
               .state = pid == 101 ? 'D' : 'S',
               .user = 300,
               .start = static_cast<uint64_t>(pid),
               .rss_pages = 10});
    proc_.Program(pid, "/usr/bin/python3", "train.py");
    proc_.Environment(pid, {{"RANK", "2"}});
    proc_.folder().Write(std::to_string(pid) + "/status",
                         "Name:\tx\nRssAnon:\t  4 kB\nRssFile:\t 2 kB\nRssShmem:\t 1 kB\n");
    proc_.folder().Write(fmt::format("{0}/task/{0}/schedstat", pid), "9 2000000000 4\n");
  }
  SourceBench bench(proc_.folder().path(), "/nowhere", {.root_pid = 100, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("rank:2", "rank_cpu_s"), 10.0);
  EXPECT_EQ(bench.Value("rank:2", "workers"), 2.0);
  EXPECT_EQ(bench.Value("rank:2", "workers_blocked"), 1.0);
  EXPECT_EQ(bench.Value("rank:2", "worker_cpu_s"), 6.0);
  EXPECT_EQ(bench.Value("rank:2", "worker_read_bytes"), 2 * 4096.0);
  EXPECT_EQ(bench.Value("rank:2", "worker_anon_bytes"), 2 * 4096.0);
  EXPECT_EQ(bench.Value("rank:2", "worker_run_delay_s"), 4.0);
  EXPECT_EQ(bench.Value("rank:2", "rank_run_delay_s"), 0.0);
  proc_.End(101);
  ASSERT_TRUE(bench.Sample(2).ok());
  EXPECT_EQ(bench.Value("rank:2", "workers"), 1.0);
  EXPECT_EQ(bench.Value("rank:2", "worker_cpu_s"), 6.0);  // what ended stays in
  EXPECT_EQ(bench.Value("rank:2", "worker_rss_bytes"),
            10.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace
}  // namespace epochmeter::collect
