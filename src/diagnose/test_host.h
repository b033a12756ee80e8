// SPDX-License-Identifier: Apache-2.0
// Memory of the host, the job's cgroup and its processes in synthetic runs, for the tests of rules.
// An empty function stands for a figure that is never told.
#pragma once

#include <functional>

#include "diagnose/test_run.h"

namespace epochmeter::diagnose {

using LevelAt = std::function<double(double t_s)>;

// The machine's memory; `used` is what gives no way.
void AddHostMemory(TestRun& run, double total_bytes, const LevelAt& used);

struct TestCgroup {
  double period_s = 0.2;
  double limit_bytes = 0;  // 0: none
  LevelAt anon, shmem, working_set;
};
void AddCgroup(TestRun& run, const TestCgroup& cgroup);

// Of the job's cgroup: the parts of its time in which some and all tasks waited for memory.
void AddPressure(TestRun& run, double waiting_ratio, double stalled_ratio);

// Of the process tree.
struct TestTree {
  double period_s = 0.5;
  LevelAt rss, anon, pss, swapped, major_faults;
};
void AddTree(TestRun& run, const TestTree& tree);

// A rank's main process and its loader workers.
struct TestWorkers {
  double period_s = 0.5;
  LevelAt main_rss, workers, worker_rss, worker_anon;
};
void AddWorkers(TestRun& run, int32_t rank, const TestWorkers& workers);

// /dev/shm; `size_bytes` 0: without a limit.
void AddShm(TestRun& run, double size_bytes, const LevelAt& used);

}  // namespace epochmeter::diagnose
