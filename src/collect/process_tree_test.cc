// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>

#include "collect/fake_proc.h"
#include "collect/host_sources.h"

namespace epochmeter::collect {
namespace {

TEST(ProcStat, ReadsAnyCommandName) {
  const auto stat = ParseProcStat(
      "42 (a) b) (S 1 2) R 7 8 9 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 9 0 12345 1000 77 18446 1");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->key, (ProcKey{.pid = 42, .start_ticks = 12345}));
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->session, 9);
  EXPECT_EQ(stat->cpu_ticks, 110U);
  EXPECT_EQ(stat->reaped_cpu_ticks, 150U);
  EXPECT_EQ(stat->major_faults, 3U);
  EXPECT_EQ(stat->threads, 9U);
  EXPECT_EQ(stat->rss_pages, 77U);
}

TEST(ProcStat, RefusesEveryCutOfItsText) {
  const std::string text = "42 (x) R 7 8 9 0 -1 4 1 2 3 4 5 6 7 8 20 0 9 0 12345 1000 77";
  for (size_t size = 0; size + 3 < text.size(); ++size) {
    EXPECT_FALSE(ParseProcStat(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(ParseProcStat("x (x) R 7 8 9 0 -1 4 1 2 3 4 5 6 7 8 20 0 9 0 12345 1000 77"));
  EXPECT_FALSE(ParseProcStat("4 (x) R 7 8 9 0 -1 4 1 2 3 4 -5 6 7 8 20 0 9 0 12345 1000 77"));
}

TEST(ProcessTree, SumsTheTree) {
  FakeProc proc;
  proc.Put({.pid = 100,
            .parent = 1,
            .user = 300,
            .system = 100,
            .reaped = 50,
            .threads = 8,
            .rss_pages = 1000});
  proc.Put(
      {.pid = 101, .parent = 100, .comm = "pt) (main", .user = 40, .threads = 2, .rss_pages = 500});
  proc.Put({.pid = 102, .parent = 100, .state = 'Z', .user = 10, .threads = 1});
  SourceBench bench(proc.folder().path(), "/nowhere", {.root_pid = 100, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(bench.Value("tree", "cpu_s"), 5.0);
  EXPECT_EQ(bench.Value("tree", "rss_bytes"), 1500 * page);
  EXPECT_EQ(bench.Value("tree", "threads"), 10.0);
  EXPECT_EQ(bench.Value("tree", "processes"), 2.0);
  EXPECT_EQ(bench.Value("tree", "major_faults"), 3 * 7.0);
  EXPECT_EQ(bench.Value("tree", "read_bytes"), 3 * 4096.0);
  EXPECT_EQ(bench.Value("tree", "written_bytes"), 3 * 512.0);
  EXPECT_EQ(bench.Value("tree", "open_fds"), 2.0);
  EXPECT_EQ(bench.Value("tree", "voluntary_context_switches"), 21.0);
  EXPECT_EQ(bench.Value("tree", "involuntary_context_switches"), 6.0);
  EXPECT_EQ(bench.Value("tree", "pss_bytes"), 2 * 6.0 * 1024);
  ASSERT_TRUE(bench.Sample(2).ok());
  EXPECT_TRUE(bench.Value("tree", "cpu_s"));
  EXPECT_FALSE(bench.Value("tree", "open_fds"));
  EXPECT_FALSE(bench.Value("tree", "pss_bytes"));
  ASSERT_TRUE(bench.Sample(31.5).ok());
  EXPECT_TRUE(bench.Value("tree", "pss_bytes"));
}

TEST(ProcessTree, CountsStatesFaultsAndCallsApart) {
  FakeProc proc;
  proc.Put({.pid = 100, .parent = 1, .state = 'R'});
  proc.Put({.pid = 101, .parent = 100, .state = 'D'});
  proc.Put({.pid = 102, .parent = 100, .state = 'Z'});
  proc.Put({.pid = 103, .parent = 100, .state = 'T'});
  proc.Put({.pid = 104, .parent = 100, .state = 'I'});
  SourceBench bench(proc.folder().path(), "/nowhere", {.root_pid = 100, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("tree", "processes_running"), 1.0);
  EXPECT_EQ(bench.Value("tree", "processes_sleeping"), 1.0);
  EXPECT_EQ(bench.Value("tree", "processes_blocked"), 1.0);
  EXPECT_EQ(bench.Value("tree", "processes_stopped"), 1.0);
  EXPECT_EQ(bench.Value("tree", "zombies"), 1.0);
  EXPECT_EQ(bench.Value("tree", "processes"), 4.0);
  EXPECT_EQ(bench.Value("tree", "minor_faults"), 5 * 30.0);
  EXPECT_EQ(bench.Value("tree", "read_call_bytes"), 5 * 9.0);
  EXPECT_EQ(bench.Value("tree", "read_bytes"), 5 * 4096.0);
}

TEST(ProcessTree, SplitsResidentMemoryAndTellsTheAffinity) {
  FakeProc proc;
  for (const int32_t pid : {100, 101}) {
    proc.Put({.pid = pid, .parent = pid == 100 ? 1 : 100});
    proc.folder().Write(std::to_string(pid) + "/status",
                        "Name:\tx\nRssAnon:\t 8 kB\nRssFile:\t 4 kB\nRssShmem:\t 2 kB\n"
                        "VmSwap:\t 1 kB\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t1\n");
    proc.folder().Write(fmt::format("{0}/task/{0}/schedstat", pid), "9 1500000000 4\n");
  }
  SourceBench bench(proc.folder().path(), "/nowhere", {.root_pid = 100, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("tree", "anon_bytes"), 2 * 8192.0);
  EXPECT_EQ(bench.Value("tree", "file_bytes"), 2 * 4096.0);
  EXPECT_EQ(bench.Value("tree", "shmem_bytes"), 2 * 2048.0);
  EXPECT_EQ(bench.Value("tree", "swapped_bytes"), 2 * 1024.0);
  EXPECT_EQ(bench.Value("tree", "run_delay_s"), 3.0);
  const auto& entities = bench.registry.entities();
  const auto tree = std::find_if(entities.begin(), entities.end(),
                                 [](const auto& entity) { return entity.name == "tree"; });
  EXPECT_THAT(tree->attributes, testing::Contains(testing::Pair("cpus_allowed", "0-3")));
  EXPECT_THAT(tree->attributes, testing::Contains(testing::Pair("memory_nodes_allowed", "1")));
}

TEST(ProcessTree, SaysWhatTheKernelDoesNotCount) {
  FakeProc proc;
  proc.Put({.pid = 100, .parent = 1});
  proc.folder().Write("100/status", "Name:\tx\nVmRSS:\t 8 kB\n");
  SourceBench bench(proc.folder().path(), "/nowhere", {.root_pid = 100, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_FALSE(bench.Value("tree", "run_delay_s"));
  EXPECT_EQ(bench.State("run_delay_s")->condition, model::SeriesCondition::kNotSupported);
  EXPECT_FALSE(bench.Value("tree", "anon_bytes"));
  EXPECT_EQ(bench.State("anon_bytes")->condition, model::SeriesCondition::kNotSupported);
}

TEST(ProcessTree, DoesNotWalkThePageTablesOfAHugeProcess) {
  FakeProc proc;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  proc.Put({.pid = 100, .parent = 1, .rss_pages = (uint64_t{17} << 30) / page});
  SourceBench bench(proc.folder().path(), "/nowhere", {.root_pid = 100, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_FALSE(bench.Value("tree", "pss_bytes"));
  EXPECT_THAT(bench.State("pss_bytes")->detail, testing::HasSubstr("so large"));
}

TEST(ProcessTree, WithholdsASumThatWouldLackAProcess) {
  FakeProc proc;
  proc.Put({.pid = 100, .parent = 1});
  proc.Put({.pid = 101, .parent = 100});
  proc.folder().Remove("101/io");
  proc.folder().Remove("101/smaps_rollup");
  SourceBench bench(proc.folder().path(), "/nowhere", {.root_pid = 100, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_TRUE(bench.Value("tree", "cpu_s"));
  EXPECT_FALSE(bench.Value("tree", "read_bytes"));
  EXPECT_FALSE(bench.Value("tree", "pss_bytes"));
  EXPECT_EQ(bench.State("read_bytes")->condition, model::SeriesCondition::kNotSupported);
  proc.Put({.pid = 101, .parent = 100});
  ASSERT_TRUE(bench.Sample(2).ok());
  EXPECT_EQ(bench.Value("tree", "read_bytes"), 2 * 4096.0);
  EXPECT_EQ(bench.State("read_bytes")->condition, model::SeriesCondition::kOk);
}

TEST(ProcessTree, LooksForNewProcessesEachTickWhileYoungThenEachTwoSeconds) {
  FakeProc proc;
  proc.Put({.pid = 100, .parent = 1});
  SourceBench bench(proc.folder().path(), "/nowhere", {.root_pid = 100, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  int32_t pid = 100;
  const auto processes_after = [&](double t_s) {
    proc.Put({.pid = ++pid, .parent = 100});
    EXPECT_TRUE(bench.Sample(t_s).ok());
    return bench.Value("tree", "processes").value_or(-1);
  };
  EXPECT_EQ(processes_after(1), 2);
  EXPECT_EQ(processes_after(10), 3);
  EXPECT_EQ(processes_after(11), 3) << "scanned a second ago";
  EXPECT_EQ(processes_after(12), 5);
  EXPECT_EQ(processes_after(13), 5);
  EXPECT_EQ(processes_after(14), 7);
}

TEST(ProcessTree, StandsStillWhenAllHaveEnded) {
  FakeProc proc;
  proc.Put({.pid = 100, .parent = 1, .user = 300});
  SourceBench bench(proc.folder().path(), "/nowhere", {.root_pid = 100, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  proc.End(100);
  ASSERT_TRUE(bench.Sample(2).ok());
  EXPECT_EQ(bench.Value("tree", "cpu_s"), 3.0);
  EXPECT_EQ(bench.Value("tree", "processes"), 0.0);
}

TEST(ProcessTree, IsRefusedWithoutARoot) {
  SourceBench bench("/proc");
  EXPECT_FALSE(bench.Make(kProcessTree).ok());
}

void BurnCpu(double seconds) {
  const std::clock_t end = std::clock() + static_cast<std::clock_t>(seconds * CLOCKS_PER_SEC);
  while (std::clock() < end) {
  }
}

// A parent that starts one worker after another, each using 30 ms of CPU.
[[noreturn]] void RunWorkers(int workers, int pause_fd) {
  for (int i = 0; i < workers; ++i) {
    const pid_t worker = ::fork();
    if (worker == 0) {
      BurnCpu(0.03);
      ::_exit(0);
    }
    ::waitpid(worker, nullptr, 0);
  }
  char byte;
  while (::read(pause_fd, &byte, 1) > 0) {
  }
  ::_exit(0);
}

TEST(ProcessTree, OfRealWorkersNeverFallsAndKeepsTheirCpuTime) {
  constexpr int kWorkers = 12;
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const pid_t root = ::fork();
  if (root == 0) {
    ::close(pipe_fds[1]);
    RunWorkers(kWorkers, pipe_fds[0]);
  }
  SourceBench bench("/proc", "/sys", {.root_pid = root, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kProcessTree).ok());
  const int64_t begin_ns = base::MonotonicNs();
  double cpu_s = 0, highest_s = 0;
  // Until all that the workers must use is there; each uses 30 ms, seen in ticks of 10 ms.
  while (cpu_s < kWorkers * 0.02 && base::MonotonicNs() - begin_ns < 20 * base::kNsPerSecond) {
    ASSERT_TRUE(bench.Sample(base::SecondsFromNs(base::MonotonicNs())).ok());
    cpu_s = bench.Value("tree", "cpu_s").value();
    ASSERT_GE(cpu_s, highest_s);
    highest_s = cpu_s;
  }
  EXPECT_GE(cpu_s, kWorkers * 0.02);
  ::close(pipe_fds[1]);
  ::close(pipe_fds[0]);
  int status = 0;
  ::waitpid(root, &status, 0);
  ASSERT_TRUE(bench.Sample(base::SecondsFromNs(base::MonotonicNs())).ok());
  EXPECT_GE(bench.Value("tree", "cpu_s").value(), highest_s);
  EXPECT_EQ(bench.Value("tree", "processes"), 0.0);
}

}  // namespace
}  // namespace epochmeter::collect
