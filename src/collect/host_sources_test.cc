// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "collect/cpu_limit.h"
#include "collect/host_sources.h"
#include "collect/proc_file.h"
#include "collect/source_test_util.h"

namespace epochmeter::collect {
namespace {

using model::SeriesCondition;
using testing::HasSubstr;

SourceBench OnFixture(const std::string& name) {
  return SourceBench(Fixture(name) + "/proc", Fixture(name) + "/sys");
}

TEST(HostCpu, ReadsTheModesInSecondsWithGuestsInsideUser) {
  SourceBench bench = OnFixture("proc_host");
  ASSERT_TRUE(bench.Make(kHostCpu).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("host", "cpu_user_s"), 101.32);
  EXPECT_EQ(bench.Value("host", "cpu_nice_s"), 0.20);
  EXPECT_EQ(bench.Value("host", "cpu_system_s"), 30.0);
  EXPECT_EQ(bench.Value("host", "cpu_idle_s"), 4000.0);
  EXPECT_EQ(bench.Value("host", "cpu_iowait_s"), 5.0);
  EXPECT_EQ(bench.Value("host", "cpu_irq_s"), 0.6);
  EXPECT_EQ(bench.Value("host", "cpu_softirq_s"), 0.7);
  EXPECT_EQ(bench.Value("host", "cpu_steal_s"), 0.8);
  EXPECT_EQ(bench.Value("host", "cpu_count"), 2.0);
  EXPECT_EQ(bench.Value("host", "cpu_limit_cores"), 2.5);
}

TEST(HostCpu, LeavesOutModesThatTheKernelDoesNotHave) {
  SourceBench bench = OnFixture("proc_old");
  ASSERT_TRUE(bench.Make(kHostCpu).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("host", "cpu_idle_s"), 40.0);
  EXPECT_FALSE(bench.Value("host", "cpu_iowait_s"));
}

TEST(HostCpu, HoldsASmallFallAndPassesAReset) {
  TempFolder proc;
  proc.Write("stat", "cpu 100 0 0 5000 300 0 0 0\n");
  SourceBench bench(proc.path());
  ASSERT_TRUE(bench.Make(kHostCpu).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  proc.Write("stat", "cpu 200 0 0 5100 290 0 0 0\n");
  ASSERT_TRUE(bench.Sample(2).ok());
  EXPECT_EQ(bench.Value("host", "cpu_iowait_s"), 3.0);
  EXPECT_EQ(bench.Value("host", "cpu_user_s"), 2.0);
  proc.Write("stat", "cpu 2 0 0 20000 2 0 0 0\n");
  ASSERT_TRUE(bench.Sample(3).ok());
  proc.Write("stat", "cpu 2 0 0 3 2 0 0 0\n");
  ASSERT_TRUE(bench.Sample(4).ok());
  EXPECT_EQ(bench.Value("host", "cpu_idle_s"), 0.03);
}

TEST(HostCpu, CountsTheCpusThatAreOnline) {
  TempFolder proc;
  proc.Write("stat", "cpu 100 0 0 500\ncpu0 1 0 0 1\ncpu1 1 0 0 1\ncpu3 1 0 0 1\nintr 5\n");
  SourceBench bench(proc.path());
  ASSERT_TRUE(bench.Make(kHostCpu).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("host", "cpu_count"), 3.0);
  proc.Write("stat", "cpu 100 0 0 500\ncpu0 1 0 0 1\nintr 5\n");
  ASSERT_TRUE(bench.Sample(12).ok());
  EXPECT_EQ(bench.Value("host", "cpu_count"), 1.0);
}

TEST(HostCpu, SaysWhenStatIsNotWhatItShouldBe) {
  TempFolder proc;
  proc.Write("stat", "intr 5\n");
  SourceBench bench(proc.path());
  ASSERT_TRUE(bench.Make(kHostCpu).ok());
  EXPECT_FALSE(bench.Sample(1).ok());
  EXPECT_TRUE(bench.last.values.empty());
}

TEST(CpuLimit, TakesTheTightestOfLeafAndAncestors) {
  const SourceBench bench = OnFixture("proc_host");
  const auto limit = ReadCpuLimit(bench.env, 700);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->cores, 2.5);  // the parent; the leaf has 6, the cpuset 6, the affinity 8
  EXPECT_THAT(limit->reason, testing::EndsWith("/job"));
  EXPECT_FALSE(limit->ancestors_hidden);
}

TEST(CpuLimit, ReadsCgroupV1AndSkipsUnlimitedGroups) {
  const SourceBench bench = OnFixture("proc_old");
  const auto limit = ReadCpuLimit(bench.env, 0);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->cores, 3.5);
}

TEST(CpuLimit, FallsBackToTheMountPointInAContainer) {
  TempFolder root;
  root.Write("proc/5/status", "Name:\tx\nCpus_allowed_list:\t0-63\n");
  root.Write("proc/5/cgroup", "0::/docker/abc\n");
  root.Write("proc/self/mountinfo",
             "30 29 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  root.Write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  const model::Env env{.proc_root = root.path() + "/proc", .sys_root = root.path() + "/sys"};
  const auto limit = ReadCpuLimit(env, 5);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->cores, 4.0);
  EXPECT_TRUE(limit->ancestors_hidden);
  EXPECT_FALSE(ReadCpuLimit(env, 6));
}

TEST(HostMemory, ReadsBytes) {
  SourceBench bench = OnFixture("proc_host");
  ASSERT_TRUE(bench.Make(kHostMemory).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("host", "memory_total_bytes"), 131981020.0 * 1024);
  EXPECT_EQ(bench.Value("host", "memory_available_bytes"), 130976772.0 * 1024);
  EXPECT_EQ(bench.Value("host", "memory_cached_bytes"), 2000000.0 * 1024);
  EXPECT_EQ(bench.Value("host", "swap_total_bytes"), 8388604.0 * 1024);
  EXPECT_EQ(bench.Value("host", "swap_free_bytes"), 8388000.0 * 1024);
}

TEST(HostMemory, TellsOnceWhyAValueIsAbsent) {
  SourceBench bench = OnFixture("proc_old");
  ASSERT_TRUE(bench.Make(kHostMemory).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  const size_t records = bench.sink.records.size();
  ASSERT_TRUE(bench.Sample(2).ok());
  EXPECT_EQ(bench.sink.records.size(), records);
  EXPECT_FALSE(bench.Value("host", "memory_available_bytes"));
  EXPECT_EQ(bench.Value("host", "swap_total_bytes"), 0.0);
  const auto state = bench.State("memory_available_bytes");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->condition, SeriesCondition::kNotSupported);
  EXPECT_THAT(state->detail, HasSubstr("MemAvailable"));
}

TEST(HostPressure, ReadsTotalsInSeconds) {
  SourceBench bench = OnFixture("proc_host");
  ASSERT_TRUE(bench.Make(kHostPressure).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("host", "pressure_cpu_waiting_s"), 20564887 * 1e-6);
  EXPECT_EQ(bench.Value("host", "pressure_memory_stalled_s"), 1.5);
  EXPECT_EQ(bench.Value("host", "pressure_io_stalled_s"), 1.5);
}

TEST(HostPressure, SaysWhatTheKernelLacks) {
  SourceBench bench = OnFixture("proc_old");
  ASSERT_TRUE(bench.Make(kHostPressure).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("host", "pressure_memory_waiting_s"), 3.0);
  EXPECT_EQ(bench.last.values.size(), 1U);
  EXPECT_EQ(bench.State("pressure_memory_stalled_s")->condition, SeriesCondition::kNotSupported);
  EXPECT_EQ(bench.State("pressure_io_waiting_s")->condition, SeriesCondition::kNotSupported);
  EXPECT_THAT(bench.State("pressure_io_waiting_s")->detail, HasSubstr("psi=1"));
  EXPECT_EQ(ConditionOf(EOPNOTSUPP), SeriesCondition::kNotSupported);
  EXPECT_EQ(ConditionOf(EACCES), SeriesCondition::kNoPermission);
}

TEST(HostDisk, CountsWholeDisksOnceAndSkipsWhatWasNeverUsed) {
  SourceBench bench = OnFixture("proc_host");
  ASSERT_TRUE(bench.Make(kHostDisk).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("disk:nvme0n1", "disk_read_bytes"), 80000.0 * 512);
  EXPECT_EQ(bench.Value("disk:nvme0n1", "disk_written_bytes"), 40000.0 * 512);
  EXPECT_EQ(bench.Value("disk:nvme0n1", "disk_io_time_s"), 1.5);
  EXPECT_EQ(bench.Value("disk:cciss/c0d0", "disk_read_bytes"), 16.0 * 512);
  EXPECT_EQ(bench.last.values.size(), 6U);
}

TEST(HostDisk, LeavesOutWhatIsMadeOfOtherDisks) {
  TempFolder root;
  std::string text;
  for (const char* name : {"dm-0", "md127", "loop3", "zram0", "ram0", "bcache0", "sda", "sda1"}) {
    text += std::string("   8       0 ") + name + " 5 0 16 1 5 0 16 1 0 1 1\n";
    if (name != std::string("sda1")) root.Write(std::string("sys/block/") + name + "/size", "9\n");
  }
  root.Write("proc/diskstats", text);
  SourceBench bench(root.path() + "/proc", root.path() + "/sys");
  ASSERT_TRUE(bench.Make(kHostDisk).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.last.values.size(), 3U);
  EXPECT_EQ(bench.Value("disk:sda", "disk_read_bytes"), 16.0 * 512);
}

TEST(HotFile, OpensTheFileAgainAfterAFailure) {
  TempFolder folder;
  folder.Write("x/y", "");
  HotFile file(folder.path() + "/x");  // a folder: it opens and can't be read
  EXPECT_EQ(file.Read().error().code, EISDIR);
  folder.Remove("x");
  EXPECT_EQ(file.Read().error().code, ENOENT);
  folder.Write("x", "7\n");
  EXPECT_EQ(*file.Read(), "7\n");
  folder.Write("x", "8\n");
  EXPECT_EQ(*file.Read(), "8\n");
}

TEST(HostDisk, ReadsTheShortLinesOfOldKernels) {
  SourceBench bench = OnFixture("proc_old");
  ASSERT_TRUE(bench.Make(kHostDisk).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("disk:hda", "disk_written_bytes"), 320.0 * 512);
  EXPECT_EQ(bench.Value("disk:hda", "disk_io_time_s"), 0.007);
}

TEST(HostDisk, IsRefusedWhereDisksCannotBeToldFromPartitions) {
  SourceBench bench(Fixture("proc_host") + "/proc", "/nowhere");
  const auto made = bench.Make(kHostDisk);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().Message(), HasSubstr("/sys"));
}

TEST(HostNetwork, CountsEachByteOnOneDevice) {
  SourceBench bench = OnFixture("proc_host");
  ASSERT_TRUE(bench.Make(kHostNetwork).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("net:eth0", "network_receive_bytes"), 872505574.0);
  EXPECT_EQ(bench.Value("net:eth0", "network_transmit_bytes"), 838678.0);
  EXPECT_EQ(bench.Value("net:eth1", "network_receive_bytes"), 5000.0);
  EXPECT_EQ(bench.last.values.size(), 4U);  // no lo, bond0, br0, veth12ab
}

TEST(HostNetwork, RisesOverAWrapOf32Bits) {
  TempFolder proc;
  proc.Write("net/dev", "  eth0:4294967000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
  SourceBench bench(proc.path());
  ASSERT_TRUE(bench.Make(kHostNetwork).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("net:eth0", "network_receive_bytes"), 4294967000.0);
  proc.Write("net/dev", "  eth0:704 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n");
  ASSERT_TRUE(bench.Sample(2).ok());
  EXPECT_EQ(bench.Value("net:eth0", "network_receive_bytes"), 4294968000.0);
  EXPECT_EQ(bench.Value("net:eth0", "network_transmit_bytes"), 100.0);  // a reset, not a wrap
}

TEST(RecorderSelf, IsNamedByTheProcess) {
  SourceBench bench("/proc");
  ASSERT_TRUE(bench.Make(kRecorderSelf).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_GT(bench.Value("recorder", "recorder_cpu_s"), 0.0);
  EXPECT_GT(bench.Value("recorder", "recorder_rss_bytes"), 1e5);
}

TEST(HostSources, WorkOnThisMachine) {
  for (const SourceDef* def : {&kHostCpu, &kHostMemory, &kHostPressure, &kHostNetwork}) {
    SourceBench bench("/proc", "/sys");
    ASSERT_TRUE(bench.Make(*def).ok()) << def->name;
    EXPECT_TRUE(bench.Sample(1).ok()) << def->name;
  }
}

TEST(CountCpuList, RefusesWhatIsNoList) {
  EXPECT_EQ(CountCpuList("0-3,8\n"), 5);
  EXPECT_EQ(CountCpuList("7"), 1);
  EXPECT_FALSE(CountCpuList(""));
  EXPECT_FALSE(CountCpuList("3-1"));
  EXPECT_FALSE(CountCpuList("0-99999999999"));
  EXPECT_FALSE(CountCpuList("0-x"));
}

}  // namespace
}  // namespace epochmeter::collect
