// SPDX-License-Identifier: Apache-2.0
// Cost of one tick of the host sources, on this machine's /proc. BM_HostTick's argument is how many
// idle processes are started beside those that are there, so that the scan has something to skip.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "collect/host_sources.h"
#include "collect/schedule.h"
#include "collect/sources.h"

namespace epochmeter::collect {
namespace {

// Children that wait until the object goes.
class IdleProcesses {
 public:
  explicit IdleProcesses(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::pause();
        ::_exit(0);
      }
      pids_.push_back(pid);
    }
  }
  IdleProcesses(const IdleProcesses&) = delete;
  IdleProcesses& operator=(const IdleProcesses&) = delete;
  ~IdleProcesses() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  pid_t first() const { return pids_.front(); }

 private:
  std::vector<pid_t> pids_;
};

// A launcher, its ranks, and their workers. Environments are those of this process: what is
// measured is the reading, not the ranks.
class RankTree {
 public:
  RankTree(int ranks, int64_t workers) : root_(::fork()) {
    if (root_ != 0) {
      ::usleep(500'000);  // until all are there
      return;
    }
    ::setpgid(0, 0);
    for (int rank = 0; rank < ranks; ++rank) {
      if (::fork() != 0) continue;
      for (int64_t i = 0; i < workers && ::fork() != 0; ++i) {
      }
      break;
    }
    for (;;) ::pause();
  }
  RankTree(const RankTree&) = delete;
  RankTree& operator=(const RankTree&) = delete;
  ~RankTree() {
    ::kill(-root_, SIGKILL);
    ::waitpid(root_, nullptr, 0);
  }
  pid_t root() const { return root_; }

 private:
  pid_t root_;
};

class NoSink : public model::Sink {
 public:
  void Write(const model::Record&) override {}
};

struct Bench {
  explicit Bench(pid_t root) : job{.root_pid = root, .cgroup = ""} {}
  SourceContext context() {
    return {
        .env = env, .registry = registry, .sink = sink, .tick_ns = base::kNsPerSecond, .job = job};
  }
  model::Env env;
  NoSink sink;
  model::Registry registry{sink};
  JobScope job;
};

void BM_HostTick(benchmark::State& state) {
  const IdleProcesses processes(state.range(0));
  Bench bench(processes.first());
  const auto schedule = Schedule::Make(bench.context(), HostSources(), "recorder");
  int64_t t_ns = bench.env.monotonic_ns();
  for (auto _ : state) {
    t_ns += base::kNsPerSecond;
    schedule->RunDue(t_ns);
  }
}
BENCHMARK(BM_HostTick)->Arg(1)->Arg(64)->Arg(250)->Unit(benchmark::kMicrosecond);

// A run of 8 ranks with 24 workers each, all of them children of a launcher: every process is read.
void BM_ProcessTree(benchmark::State& state) {
  const RankTree tree(8, state.range(0));
  Bench bench(tree.root());
  auto source = kProcessTree.Make(bench.context());
  if (!source.ok()) return state.SkipWithError(source.error().Message().c_str());
  int64_t t_ns = 0;
  for (auto _ : state) {
    model::Samples out{.t_ns = t_ns += base::kNsPerSecond, .values = {}};
    if (!source.value()->Sample(out).ok()) state.SkipWithError("cannot read");
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(BM_ProcessTree)->Arg(7)->Arg(24)->Unit(benchmark::kMicrosecond);

void BM_Source(benchmark::State& state) {
  const IdleProcesses processes(64);
  Bench bench(processes.first());
  const SourceDef& def = HostSources()[static_cast<size_t>(state.range(0))];
  auto source = def.Make(bench.context());
  if (!source.ok()) return state.SkipWithError(source.error().Message().c_str());
  state.SetLabel(std::string(def.name));
  int64_t t_ns = 0;
  for (auto _ : state) {
    model::Samples out{.t_ns = t_ns += base::kNsPerSecond, .values = {}};
    if (!source.value()->Sample(out).ok()) state.SkipWithError("cannot read");
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(BM_Source)->DenseRange(0, 14)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace epochmeter::collect
