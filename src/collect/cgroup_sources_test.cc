// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/cgroup_test_util.h"
#include "collect/host_sources.h"

namespace epochmeter::collect {
namespace {

using model::SeriesCondition;
using testing::HasSubstr;

constexpr const char* kStatV2 =
    "anon 1000\nfile 5000\nkernel 30\nkernel_stack 7\nshmem 200\ninactive_file 4000\n"
    "active_file 800\n";

// A container limited by its pod.
class Pod : public FakeCgroups {
 public:
  Pod() : FakeCgroups("0::/pod/c1\n", kMountV2) {
    Put("pod/c1/memory.current", "6030\n");
    Put("pod/c1/memory.stat", kStatV2);
    Put("pod/c1/memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 9\n");
    Put("pod/c1/memory.swap.current", "64\n");
    Put("pod/c1/memory.peak", "9999\n");
    Put("pod/c1/memory.max", "max\n");
    Put("pod/c1/memory.high", "8000\n");
    Put("pod/memory.max", "7000\n");
    Put("pod/memory.current", "6500\n");
    Put("pod/memory.events", "low 1\nhigh 2\nmax 8\noom 4\noom_kill 5\n");
  }
};

std::vector<model::Event> Kills(const SourceBench& bench) {
  std::vector<model::Event> kills;
  for (const model::Record& record : bench.sink.records) {
    const auto* event = std::get_if<model::Event>(&record);
    if (event != nullptr && event->name == "oom_kill") kills.push_back(*event);
  }
  return kills;
}

TEST(CgroupMemory, ReadsVersion2WithTheTightestLimitOfTheChain) {
  const Pod host;
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupMemory).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("job", "memory_current_bytes"), 6030.0);
  EXPECT_EQ(bench.Value("job", "memory_working_set_bytes"), 2030.0);
  EXPECT_EQ(bench.Value("job", "memory_anon_bytes"), 1000.0);
  EXPECT_EQ(bench.Value("job", "memory_file_bytes"), 5000.0);
  EXPECT_EQ(bench.Value("job", "memory_shmem_bytes"), 200.0);
  EXPECT_EQ(bench.Value("job", "memory_kernel_bytes"), 30.0);
  EXPECT_EQ(bench.Value("job", "memory_active_file_bytes"), 800.0);
  EXPECT_EQ(bench.Value("job", "memory_swap_bytes"), 64.0);
  EXPECT_EQ(bench.Value("job", "memory_peak_bytes"), 9999.0);
  EXPECT_EQ(bench.Value("job", "memory_limit_bytes"), 7000.0);
  EXPECT_EQ(bench.Value("job", "memory_high_limit_bytes"), 8000.0);
  EXPECT_FALSE(bench.Value("job", "memory_swap_limit_bytes"));
  EXPECT_EQ(bench.Value("job", "memory_oom_kills"), 5.0);
  EXPECT_EQ(bench.Value("/pod", "memory_current_bytes"), 6500.0);
  EXPECT_EQ(bench.Value("/pod", "memory_max_events"), 8.0);
  EXPECT_FALSE(bench.Value("/", "memory_current_bytes"));
}

TEST(CgroupMemory, ReadsLimitsAgainWhenTheyChange) {
  const Pod host;
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupMemory).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  host.Put("pod/memory.max", "max\n");
  ASSERT_TRUE(bench.Sample(11.5).ok());
  EXPECT_FALSE(bench.Value("job", "memory_limit_bytes"));
  host.Put("pod/c1/memory.max", "5000\n");
  ASSERT_TRUE(bench.Sample(22).ok());
  EXPECT_EQ(bench.Value("job", "memory_limit_bytes"), 5000.0);
}

TEST(CgroupMemory, MakesAKillAnEventOnceAtItsLowestLevel) {
  const Pod host;
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupMemory).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_TRUE(Kills(bench).empty());  // those of before are not of this run
  host.Put("pod/c1/memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 7\n");
  host.Put("pod/memory.events", "low 1\nhigh 2\nmax 8\noom 4\noom_kill 8\n");
  ASSERT_TRUE(bench.Sample(2).ok());
  ASSERT_TRUE(bench.Sample(3).ok());
  const auto kills = Kills(bench);
  ASSERT_EQ(kills.size(), 2U);
  EXPECT_EQ(kills[0].kind, model::EventKind::kProcess);
  EXPECT_EQ(kills[0].Text("cgroup"), "/pod/c1");
  EXPECT_EQ(kills[0].Text("where"), "job");
  EXPECT_EQ(kills[0].Number("count"), 2.0);
  EXPECT_EQ(kills[1].Text("where"), "above");  // a neighbour in the pod
  EXPECT_EQ(kills[1].Number("count"), 1.0);
}

TEST(CgroupMemory, TellsOfAKillThatTookTheCgroupWithIt) {
  const Pod host;
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupMemory).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  // Emptied, as a HotFile of a removed cgroup has nothing to give.
  host.Put("pod/c1/memory.events", "");
  host.Put("pod/memory.events", "low 1\nhigh 2\nmax 8\noom 4\noom_kill 6\n");
  ASSERT_TRUE(bench.Sample(2).ok());
  ASSERT_EQ(Kills(bench).size(), 1U);
  EXPECT_EQ(Kills(bench)[0].Text("cgroup"), "/pod");
}

TEST(CgroupMemory, ReadsVersion1) {
  FakeCgroups host("4:memory:/slurm/job_1\n", kMountsV1);
  const std::string job = "memory/slurm/job_1/";
  host.Put(job + "memory.usage_in_bytes", "8000\n");
  host.Put(job + "memory.stat",
           "cache 1\nrss 2\ntotal_cache 5000\ntotal_rss 2500\ntotal_shmem 300\ntotal_swap 12\n"
           "total_inactive_file 4500\ntotal_active_file 400\n");
  host.Put(job + "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  host.Put(job + "memory.failcnt", "17\n");
  host.Put(job + "memory.max_usage_in_bytes", "9000\n");
  host.Put(job + "memory.limit_in_bytes", "9223372036854771712\n");
  host.Put("memory/slurm/memory.limit_in_bytes", "10000\n");
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupMemory).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("job", "memory_working_set_bytes"), 3500.0);
  EXPECT_EQ(bench.Value("job", "memory_anon_bytes"), 2500.0);
  EXPECT_EQ(bench.Value("job", "memory_file_bytes"), 5000.0);
  EXPECT_EQ(bench.Value("job", "memory_swap_bytes"), 12.0);
  EXPECT_EQ(bench.Value("job", "memory_max_events"), 17.0);
  EXPECT_EQ(bench.Value("job", "memory_oom_kills"), 2.0);
  EXPECT_EQ(bench.Value("job", "memory_peak_bytes"), 9000.0);
  EXPECT_EQ(bench.Value("job", "memory_limit_bytes"), 10000.0);
  EXPECT_FALSE(bench.Value("job", "memory_high_events"));
  EXPECT_EQ(bench.State("memory_kernel_bytes")->condition, SeriesCondition::kNotSupported);
}

TEST(CgroupMemory, SaysWhenTheControllerIsOff) {
  FakeCgroups host("0::/user.slice\n", kMountV2);
  host.Put("user.slice/cgroup.procs", "700\n");
  SourceBench bench = host.Bench();
  const auto made = bench.Make(kCgroupMemory);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().Message(), HasSubstr("memory controller"));
}

TEST(CgroupCpu, AddsThrottlingOverTheChain) {
  FakeCgroups host("0::/pod/c1\n", kMountV2);
  host.Put(
      "pod/c1/cpu.stat",
      "usage_usec 5000000\nuser_usec 1\nnr_periods 10\nnr_throttled 2\nthrottled_usec 300000\n");
  host.Put("pod/cpu.stat", "usage_usec 9\nnr_periods 5\nnr_throttled 1\nthrottled_usec 700000\n");
  host.Put("pod/c1/cpu.max", "max 100000\n");
  host.Put("pod/cpu.max", "250000 100000\n");
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupCpu).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("job", "cpu_usage_s"), 5.0);
  EXPECT_EQ(bench.Value("job", "cpu_throttled_s"), 1.0);
  EXPECT_EQ(bench.Value("job", "cpu_throttled_periods"), 3.0);
  EXPECT_EQ(bench.Value("job", "cpu_periods"), 15.0);
  EXPECT_EQ(bench.Value("job", "cpu_quota_cores"), 2.5);
}

TEST(CgroupCpu, ReadsVersion1InItsOwnUnits) {
  FakeCgroups host("3:cpu,cpuacct:/job\n", kMountsV1);
  host.Put("cpu/job/cpuacct.usage", "2500000000\n");
  host.Put("cpu/job/cpu.stat", "nr_periods 4\nnr_throttled 1\nthrottled_time 500000000\n");
  host.Put("cpu/job/cpu.cfs_quota_us", "-1\n");
  host.Put("cpu/job/cpu.cfs_period_us", "100000\n");
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupCpu).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("job", "cpu_usage_s"), 2.5);
  EXPECT_EQ(bench.Value("job", "cpu_throttled_s"), 0.5);
  EXPECT_FALSE(bench.Value("job", "cpu_quota_cores"));
}

TEST(CgroupCpu, WithoutTheControllerHasUsageButNoThrottling) {
  FakeCgroups host("0::/user.slice\n", kMountV2);
  host.Put("user.slice/cpu.stat", "usage_usec 1000\nuser_usec 1\nsystem_usec 1\n");
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupCpu).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("job", "cpu_usage_s"), 0.001);
  EXPECT_FALSE(bench.Value("job", "cpu_throttled_s"));
  EXPECT_EQ(bench.State("cpu_throttled_s")->condition, SeriesCondition::kNotSupported);
}

TEST(CgroupPressure, ReadsTheJobsOwnStalls) {
  FakeCgroups host("0::/job\n", kMountV2);
  host.Put("job/cpu.pressure",
           "some avg10=1.00 avg60=0.00 avg300=0.00 total=2000000\n"
           "full avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n");
  host.Put("job/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupPressure).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("job", "pressure_cpu_waiting_s"), 2.0);
  EXPECT_EQ(bench.Value("job", "pressure_cpu_stalled_s"), 0.5);
  EXPECT_EQ(bench.Value("job", "pressure_memory_waiting_s"), 7e-6);
  EXPECT_FALSE(bench.Value("job", "pressure_memory_stalled_s"));
  EXPECT_THAT(bench.State("pressure_io_waiting_s")->detail, HasSubstr("CONFIG_PSI"));
}

TEST(CgroupIo, LeavesOutDevicesMadeOfOthers) {
  FakeCgroups host("0::/job\n", kMountV2);
  std::filesystem::create_directories(host.env().sys_root + "/dev/block");
  for (const auto& [device, name] : {std::pair("259:0", "nvme0n1"), std::pair("253:0", "dm-0")}) {
    std::filesystem::create_symlink(std::string("../../devices/virtual/block/") + name,
                                    host.env().sys_root + "/dev/block/" + device);
  }
  host.Put("job/io.stat",
           "259:0 rbytes=4096 wbytes=512 rios=1 wios=1 dbytes=0 dios=0\n"
           "253:0 rbytes=4096 wbytes=512 rios=1 wios=1 dbytes=0 dios=0\n"
           "7:1 rbytes=100 wbytes=0\n"
           "8:0 \n");
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupIo).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("job", "io_read_bytes"), 4096.0);
  EXPECT_EQ(bench.Value("job", "io_written_bytes"), 512.0);
}

TEST(CgroupIo, ReadsVersion1AndSaysWhenThereIsNoController) {
  FakeCgroups host("5:blkio:/job\n", kMountsV1);
  host.Put("blkio/job/blkio.throttle.io_service_bytes",
           "8:0 Read 1000\n8:0 Write 50\n8:0 Sync 1050\n8:0 Total 1050\nTotal 1050\n");
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupIo).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("job", "io_read_bytes"), 1000.0);
  EXPECT_EQ(bench.Value("job", "io_written_bytes"), 50.0);
  FakeCgroups off("0::/job\n", kMountV2);
  off.Put("job/cgroup.procs", "700\n");
  SourceBench without = off.Bench();
  ASSERT_TRUE(without.Make(kCgroupIo).ok());
  EXPECT_FALSE(without.Sample(1).ok());
}

TEST(CgroupSources, ShareOneEntityThatSaysWhereItIs) {
  const Pod host;
  host.Put("pod/c1/cpu.stat", "usage_usec 1\n");
  SourceBench bench = host.Bench();
  ASSERT_TRUE(bench.Make(kCgroupMemory).ok());
  ASSERT_TRUE(bench.Make(kCgroupCpu).ok());
  size_t jobs = 0;
  for (const model::Record& record : bench.sink.records) {
    const auto* entity = std::get_if<model::EntityDef>(&record);
    if (entity == nullptr || entity->name != "job") continue;
    ++jobs;
    EXPECT_THAT(entity->attributes, testing::Contains(testing::Pair("memory_path", "/pod/c1")));
    EXPECT_THAT(entity->attributes, testing::Contains(testing::Pair("ancestors_hidden", "no")));
  }
  EXPECT_EQ(jobs, 1U);
}

}  // namespace
}  // namespace epochmeter::collect
