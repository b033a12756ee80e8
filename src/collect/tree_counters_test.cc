// SPDX-License-Identifier: Apache-2.0
#include "collect/tree_counters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace epochmeter::collect {
namespace {

// A kernel's bookkeeping of processes, to scan at any speed.
class FakeKernel {
 public:
  struct Process {
    ProcKey key;
    int32_t parent = 0;
    bool ignores_children = false;  // SIGCHLD ignored: what children used vanishes
    TreeCounts own{};
    TreeCounts reaped{};
  };

  int32_t Spawn(int32_t parent, bool ignores_children = false) {
    const int32_t pid = next_pid_++;
    processes[pid] = {.key = {.pid = pid, .start_ticks = ++clock_},
                      .parent = parent,
                      .ignores_children = ignores_children};
    return pid;
  }
  void Work(int32_t pid, uint64_t ticks) {
    TreeCounts& own = processes.at(pid).own;
    own[kCpuTicks] += ticks;
    own[kMajorFaults] += ticks / 3;
    own[kReadBytes] += 10 * ticks;
    own[kWrittenBytes] += 7 * ticks;
    truth[kCpuTicks] += ticks;
    truth[kMajorFaults] += ticks / 3;
    truth[kReadBytes] += 10 * ticks;
    truth[kWrittenBytes] += 7 * ticks;
  }
  // Ends a process; its children go to a reaper outside the run.
  void End(int32_t pid) {
    const Process gone = processes.at(pid);
    for (auto& [other, process] : processes) {
      if (process.parent == pid) process.parent = 1;
    }
    const auto parent = processes.find(gone.parent);
    if (parent != processes.end() && !parent->second.ignores_children) {
      for (size_t i = 0; i < kTreeCounters; ++i) {
        parent->second.reaped[i] += gone.own[i] + gone.reaped[i];
      }
    }
    processes.erase(pid);
  }
  std::optional<ProcessCounts> Read(const ProcKey& key) const {
    const auto found = processes.find(key.pid);
    if (found == processes.end() || found->second.key != key) return std::nullopt;
    const Process& process = found->second;
    ProcessCounts counts{.key = key,
                         .parent = process.parent,
                         .own_and_reaped = process.own,
                         .reaped_cpu_ticks = process.reaped[kCpuTicks],
                         .reaped_major_faults = process.reaped[kMajorFaults]};
    for (size_t i = 0; i < kTreeCounters; ++i) counts.own_and_reaped[i] += process.reaped[i];
    return counts;
  }

  std::map<int32_t, Process> processes;
  TreeCounts truth{};

 private:
  int32_t next_pid_ = 100;
  uint64_t clock_ = 0;
};

// Scans in an order that the test chooses, with `between` called before each process is read.
template <typename Between>
void Scan(const FakeKernel& kernel, TreeCounters& counters, std::vector<int32_t> order,
          Between between) {
  std::vector<ProcessCounts> live;
  for (const int32_t pid : order) {
    between(pid);
    const auto found = kernel.processes.find(pid);
    if (found == kernel.processes.end()) continue;
    live.push_back(*kernel.Read(found->second.key));
  }
  counters.Update(live, [&](const ProcKey& key) { return kernel.Read(key); });
}

std::vector<int32_t> Pids(const FakeKernel& kernel) {
  std::vector<int32_t> pids;
  for (const auto& [pid, process] : kernel.processes) pids.push_back(pid);
  return pids;
}

void QuietScan(const FakeKernel& kernel, TreeCounters& counters) {
  Scan(kernel, counters, Pids(kernel), [](int32_t) {});
}

TEST(TreeCounters, KeepsWhatAReapedWorkerUsedWithoutCountingItTwice) {
  FakeKernel kernel;
  TreeCounters counters;
  const int32_t root = kernel.Spawn(1);
  const int32_t worker = kernel.Spawn(root);
  kernel.Work(root, 5);
  kernel.Work(worker, 100);
  QuietScan(kernel, counters);
  EXPECT_EQ(counters.totals(), kernel.truth);
  kernel.Work(worker, 7);
  kernel.End(worker);
  QuietScan(kernel, counters);
  EXPECT_EQ(counters.totals(), kernel.truth);
}

TEST(TreeCounters, KeepsWhatVanishesWithAnIgnoredChild) {
  FakeKernel kernel;
  TreeCounters counters;
  const int32_t root = kernel.Spawn(1, /*ignores_children=*/true);
  const int32_t worker = kernel.Spawn(root);
  kernel.Work(worker, 100);
  QuietScan(kernel, counters);
  kernel.End(worker);
  kernel.Work(root, 1000);
  QuietScan(kernel, counters);
  EXPECT_EQ(counters.totals(), kernel.truth);
}

TEST(TreeCounters, FollowsAChainThatEndsAtOnce) {
  FakeKernel kernel;
  TreeCounters counters;
  const int32_t root = kernel.Spawn(1);
  const int32_t middle = kernel.Spawn(root);
  const int32_t leaf = kernel.Spawn(middle);
  kernel.Work(leaf, 50);
  kernel.Work(middle, 20);
  QuietScan(kernel, counters);
  kernel.End(leaf);
  kernel.End(middle);
  QuietScan(kernel, counters);
  EXPECT_EQ(counters.totals(), kernel.truth);
  kernel.End(root);
  QuietScan(kernel, counters);
  EXPECT_EQ(counters.totals(), kernel.truth);
}

TEST(TreeCounters, AWorkerReapedDuringTheScanCountsOnceInEitherOrderOfReading) {
  for (const bool parent_first : {true, false}) {
    FakeKernel kernel;
    TreeCounters counters;
    const int32_t root = kernel.Spawn(1);
    const int32_t worker = kernel.Spawn(root);
    kernel.Work(worker, 1000);
    QuietScan(kernel, counters);
    const std::vector<int32_t> order =
        parent_first ? std::vector{root, worker} : std::vector{worker, root};
    int reads = 0;
    Scan(kernel, counters, order, [&](int32_t) {
      if (++reads == 2) kernel.End(worker);
    });
    EXPECT_EQ(counters.totals(), kernel.truth) << parent_first;
    kernel.Work(root, 3);
    QuietScan(kernel, counters);
    EXPECT_EQ(counters.totals(), kernel.truth) << parent_first;
  }
}

TEST(TreeCounters, APidUsedAgainIsAnotherProcess) {
  FakeKernel kernel;
  TreeCounters counters;
  const int32_t root = kernel.Spawn(1, /*ignores_children=*/true);
  const int32_t worker = kernel.Spawn(root);
  kernel.Work(worker, 40);
  QuietScan(kernel, counters);
  kernel.processes.at(worker) = {.key = {.pid = worker, .start_ticks = 999}, .parent = root};
  kernel.Work(worker, 2);
  QuietScan(kernel, counters);
  EXPECT_EQ(counters.totals()[kCpuTicks], 42U);
}

class Churn {
 public:
  Churn(uint32_t seed, bool mixed) : random_(seed), mixed_(mixed) {
    root_ = kernel_.Spawn(1, mixed_ && random_() % 4 == 0);
  }

  // One thing that processes do. Without `mixed` a process ends only when it has no children.
  void Step() {
    const std::vector<int32_t> pids = Pids(kernel_);
    const int32_t pid = pids[random_() % pids.size()];
    switch (random_() % 4) {
      case 0:
        if (pids.size() < 12) kernel_.Spawn(pid, mixed_ && random_() % 4 == 0);
        break;
      case 1:
        if (pid != root_ && (mixed_ || !HasChildren(pid))) kernel_.End(pid);
        break;
      default:
        kernel_.Work(pid, 1 + random_() % 50);
    }
  }
  void BusyScan(TreeCounters& counters) {
    std::vector<int32_t> order = Pids(kernel_);
    std::shuffle(order.begin(), order.end(), random_);
    Scan(kernel_, counters, order, [&](int32_t) {
      if (random_() % 3 == 0) Step();
    });
  }
  FakeKernel& kernel() { return kernel_; }
  uint32_t Random() { return static_cast<uint32_t>(random_()); }

 private:
  bool HasChildren(int32_t pid) const {
    for (const auto& [other, process] : kernel_.processes) {
      if (process.parent == pid) return true;
    }
    return false;
  }
  std::mt19937 random_;
  bool mixed_;
  FakeKernel kernel_;
  int32_t root_ = 0;
};

void ExpectNotFallingAndNotAboveTruth(const TreeCounts& before, const TreeCounts& after,
                                      const TreeCounts& truth) {
  for (size_t i = 0; i < kTreeCounters; ++i) {
    ASSERT_GE(after[i], before[i]) << i;
    ASSERT_LE(after[i], truth[i]) << i;
  }
}

TEST(TreeCounters, AreExactWhereParentsOutliveAndReapTheirChildren) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Churn churn(seed, /*mixed=*/false);
    TreeCounters counters;
    for (int round = 0; round < 40; ++round) {
      for (uint32_t i = churn.Random() % 6; i > 0; --i) churn.Step();
      const TreeCounts before = counters.totals();
      churn.BusyScan(counters);
      ExpectNotFallingAndNotAboveTruth(before, counters.totals(), churn.kernel().truth);
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << " round " << round;
    }
    QuietScan(churn.kernel(), counters);
    ASSERT_EQ(counters.totals(), churn.kernel().truth) << seed;
  }
}

TEST(TreeCounters, NeverFallAndNeverExceedTheTruthWhateverEndsWhen) {
  for (uint32_t seed = 1000; seed < 1300; ++seed) {
    Churn churn(seed, /*mixed=*/true);
    TreeCounters counters;
    for (int round = 0; round < 40; ++round) {
      for (uint32_t i = churn.Random() % 6; i > 0; --i) churn.Step();
      const TreeCounts before = counters.totals();
      churn.BusyScan(counters);
      ExpectNotFallingAndNotAboveTruth(before, counters.totals(), churn.kernel().truth);
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << " round " << round;
    }
  }
}

TEST(DepartingSum, KeepsWhatGoesAndStartsAgainAfterAFall) {
  DepartingSum sum;
  sum.Update({{{.pid = 1, .start_ticks = 1}, 10}, {{.pid = 2, .start_ticks = 1}, 5}});
  EXPECT_EQ(sum.total(), 15U);
  sum.Update({{{.pid = 1, .start_ticks = 1}, 12}});
  EXPECT_EQ(sum.total(), 17U);
  sum.Update({{{.pid = 1, .start_ticks = 1}, 3}});
  EXPECT_EQ(sum.total(), 20U);
}

}  // namespace
}  // namespace epochmeter::collect
