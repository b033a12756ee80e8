// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>

#include "collect/host_sources.h"
#include "collect/proc_pid.h"
#include "collect/source_test_util.h"
#include "collect/tree_members.h"

namespace epochmeter::collect {
namespace {

struct FakeProcess {
  int32_t pid, parent;
  int32_t group = 1, session = 1;
  std::string comm = "python";
  char state = 'S';
  uint64_t user = 0, system = 0, reaped = 0, start = 500, threads = 1, rss_pages = 0;
};

// A /proc made of files.
class FakeProc {
 public:
  void Put(const FakeProcess& p) {
    const std::string folder = std::to_string(p.pid);
    folder_.Write(folder + "/stat",
                  fmt::format("{} ({}) {} {} {} {} 0 -1 4194304 10 20 3 4 {} {} {} 0 20 0 {} 0 {} "
                              "1000000 {} 18446744073709551615 1 1\n",
                              p.pid, p.comm, p.state, p.parent, p.group, p.session, p.user,
                              p.system, p.reaped, p.threads, p.start, p.rss_pages));
    folder_.Write(folder + "/io",
                  "rchar: 9\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 512\n"
                  "cancelled_write_bytes: 0\n");
    folder_.Write(folder + "/smaps_rollup", "0-1 ---p 0 0 [rollup]\nRss: 8 kB\nPss: 6 kB\n");
    folder_.Write(folder + "/fd/0", "");
    folder_.Write(folder + fmt::format("/task/{}/status", p.pid),
                  "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n");
  }
  void Environ(int32_t pid, const std::string& name, const std::string& value) {
    folder_.Write(fmt::format("{}/environ", pid),
                  fmt::format("A=1{}{}={}{}B=2{}", '\0', name, value, '\0', '\0'));
  }
  void End(int32_t pid) { folder_.Remove(std::to_string(pid)); }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

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
