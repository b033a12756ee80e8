// SPDX-License-Identifier: Apache-2.0
// A machine of files: every host source is made and read twice, and doctor's checks look, while
// files of /proc and /sys say what the fuzzer wants. Values are finite and of series that are
// defined; facts of checks have a text, and a fault says what to do.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"
#include "collect/checks.h"
#include "collect/cpu_affinity.h"
#include "collect/cpu_limit.h"
#include "collect/sources.h"
#include "fuzz/input.h"
#include "fuzz/scratch.h"
#include "fuzz/target.h"

namespace epochmeter::fuzz {
namespace {

constexpr int32_t kTraining = 700;

struct KnownFile {
  const char* name;
  const char* usual;
};

constexpr const char* kStat =
    "700 (python) S 1 700 700 0 -1 4194304 10 20 3 4 5 6 7 8 20 0 3 0 500 0 1000000 100 "
    "18446744073709551615 1 1\n";
constexpr const char* kPressure =
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=345\n";

constexpr std::array kFiles = {
    KnownFile{"proc/stat",
              "cpu  10132 20 3000 400000 500 60 70 80 900 9\ncpu0 5066 10 1500 200000 250 30 35 40 "
              "450 4\nctxt 12345\nprocs_running 2\n"},
    KnownFile{"proc/meminfo",
              "MemTotal: 100 kB\nMemFree: 20 kB\nMemAvailable: 50 kB\nCached: 3 kB\nShmem: 1 kB\n"},
    KnownFile{"proc/vmstat", "pgmajfault 5\noom_kill 0\n"},
    KnownFile{"proc/loadavg", "0.5 0.4 0.3 1/200 4711\n"},
    KnownFile{"proc/diskstats", " 8 0 sda 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 0 0\n"},
    KnownFile{"proc/net/dev",
              "Inter-|   Receive | Transmit\n face |bytes\n  eth0: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 "
              "0\n"},
    KnownFile{"proc/pressure/cpu", kPressure},
    KnownFile{"proc/pressure/io", kPressure},
    KnownFile{"proc/pressure/memory", kPressure},
    KnownFile{"proc/self/mountinfo",
              "24 22 0:23 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"},
    KnownFile{"proc/self/cgroup", "0::/job/step\n"},
    KnownFile{"proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7\nNSpid:\t5\n"},
    KnownFile{"proc/self/statm", "1000 200 30 1 0 40 0\n"},
    KnownFile{"proc/self/stat", kStat},
    KnownFile{"proc/self/io", "rchar: 9\nwchar: 9\nread_bytes: 1\nwrite_bytes: 1\n"},
    KnownFile{"proc/700/stat", kStat},
    KnownFile{"proc/700/cgroup", "0::/job/step\n"},
    KnownFile{"proc/700/status",
              "Name:\tpython\nCpus_allowed_list:\t0-3\nvoluntary_ctxt_switches:\t7\n"},
    KnownFile{"proc/700/io", "rchar: 9\nwchar: 9\nread_bytes: 1\nwrite_bytes: 1\n"},
    KnownFile{"proc/700/smaps_rollup", "0-1 ---p 0 0 [rollup]\nRss: 8 kB\nPss: 6 kB\n"},
    KnownFile{"proc/700/environ", "RANK=0"},
    KnownFile{"proc/700/comm", "python\n"},
    KnownFile{"proc/700/cmdline", "python"},
    KnownFile{"proc/700/mountinfo", "24 22 0:23 / / rw - ext4 /dev/sda1 rw\n"},
    KnownFile{"proc/700/task/700/status", "Name:\tx\nvoluntary_ctxt_switches:\t7\n"},
    KnownFile{"proc/700/task/700/stat", kStat},
    KnownFile{
        "proc/701/stat",
        "701 (a b) c) R 700 700 700 0 -1 4194304 10 20 3 4 5 6 7 8 20 0 3 0 501 0 1000000 100 "
        "18446744073709551615 1 1\n"},
    KnownFile{"sys/fs/cgroup/job/cpu.max", "200000 100000\n"},
    KnownFile{"sys/fs/cgroup/job/step/cpu.max", "max 100000\n"},
    KnownFile{"sys/fs/cgroup/job/step/cpu.stat",
              "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 1\nnr_throttled 1\n"
              "throttled_usec 7\n"},
    KnownFile{"sys/fs/cgroup/job/step/cpuset.cpus.effective", "0-3,8\n"},
    KnownFile{"sys/fs/cgroup/job/step/memory.current", "4096\n"},
    KnownFile{"sys/fs/cgroup/job/step/memory.max", "max\n"},
    KnownFile{"sys/fs/cgroup/job/step/memory.peak", "8192\n"},
    KnownFile{"sys/fs/cgroup/job/step/memory.stat", "anon 1\nfile 2\nshmem 3\npgmajfault 4\n"},
    KnownFile{"sys/fs/cgroup/job/step/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"},
    KnownFile{"sys/fs/cgroup/job/step/memory.swap.current", "0\n"},
    KnownFile{"sys/fs/cgroup/job/step/io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n"},
    KnownFile{"sys/fs/cgroup/job/step/io.pressure", kPressure},
    KnownFile{"sys/fs/cgroup/job/step/memory.pressure", kPressure},
    KnownFile{"sys/fs/cgroup/job/step/cpu.pressure", kPressure},
    KnownFile{"sys/fs/cgroup/job/step/cgroup.procs", "700\n"},
    KnownFile{"sys/block/sda/size", "1000\n"},
    KnownFile{"sys/class/net/eth0/ifindex", "2\n"},
    KnownFile{"sys/class/net/eth0/speed", "10000\n"},
    KnownFile{"sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 5 kB\n"},
    KnownFile{"sys/devices/system/node/node0/numastat", "numa_hit 5\nnuma_miss 1\n"},
    KnownFile{"sys/devices/system/node/node0/cpulist", "0-3\n"},
    KnownFile{"sys/devices/system/cpu/online", "0-7\n"},
    KnownFile{"sys/class/powercap/intel-rapl:0/name", "package-0\n"},
    KnownFile{"sys/class/powercap/intel-rapl:0/energy_uj", "55\n"},
    KnownFile{"sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000\n"},
    KnownFile{"sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "5\n"},
    KnownFile{"sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n"},
    KnownFile{"sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"},
    KnownFile{"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  580.65.06  Release\n"},
};

// The tree as it usually is, once; each input's changes are taken back after it.
class Machine {
 public:
  Machine() {
    for (const KnownFile& file : kFiles) root_.Write(file.name, file.usual);
  }
  void Set(size_t which, std::string_view content) { root_.Write(kFiles[which].name, content); }
  void Restore(size_t which) { root_.Write(kFiles[which].name, kFiles[which].usual); }
  const std::string& path() const { return root_.path(); }

 private:
  Scratch root_;
};

void ReadAllSources(const model::Env& env) {
  model::MemorySink sink;
  model::Registry registry(sink);
  const collect::JobScope job{.root_pid = kTraining};
  const collect::SourceContext context{
      .env = env, .registry = registry, .sink = sink, .tick_ns = base::kNsPerSecond, .job = job};
  for (const collect::SourceDef& def : collect::HostSources()) {
    const auto source = def.Make(context);
    if (!source.ok()) continue;
    for (const int64_t t_ns : {int64_t{1}, int64_t{11}}) {
      model::Samples samples{.t_ns = t_ns * base::kNsPerSecond, .values = {}};
      (void)(*source)->Sample(samples);
      for (const model::SampleValue& value : samples.values) {
        EPM_CHECK(value.series < registry.all_series().size());
        EPM_CHECK(std::isfinite(value.value)) << registry.series(value.series).metric.name;
      }
    }
  }
}

void RunChecks(const std::string& root) {
  const collect::MachineProbe probe;
  const collect::CheckContext context{.root = root,
                                      .pid = kTraining,
                                      .run_folder = root + "/runs",
                                      .socket_error = {},
                                      .socket_folder = root,
                                      .python_folder = {},
                                      .probe = &probe};
  for (const collect::CheckDef& check : collect::Checks()) {
    for (const model::CheckFact& fact : check.Run(context)) {
      EPM_CHECK(!fact.what.empty()) << check.id;
      EPM_CHECK(fact.status != model::CheckStatus::kFault || !fact.fix.empty()) << check.id;
    }
  }
}

}  // namespace

void FeedHost(std::string_view bytes) {
  static Machine machine;
  Input in(bytes);
  std::vector<size_t> changed;
  const bool checks = in.Bit();
  while (!in.done() && changed.size() < 16) {
    changed.push_back(in.Below(kFiles.size()));
    machine.Set(changed.back(), in.Take(in.Number(2)));
  }
  model::Env env;
  env.proc_root = machine.path() + "/proc";
  env.sys_root = machine.path() + "/sys";
  ReadAllSources(env);
  if (const auto limit = collect::ReadCpuLimit(env, kTraining)) {
    EPM_CHECK(std::isfinite(limit->cores) && limit->cores >= 0);
  }
  (void)collect::TrainingCpus(env, kTraining);
  if (checks) RunChecks(machine.path());
  for (const size_t which : changed) machine.Restore(which);
}

}  // namespace epochmeter::fuzz
