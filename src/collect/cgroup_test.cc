// SPDX-License-Identifier: Apache-2.0
#include "collect/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/cgroup_test_util.h"
#include "collect/cpu_limit.h"

namespace epochmeter::collect {
namespace {

std::vector<std::string> Names(const CgroupChain& chain) {
  std::vector<std::string> names;
  for (const CgroupLevel& level : chain.levels) names.push_back(level.name);
  return names;
}

using StringList = std::vector<std::string>;

TEST(FindCgroup, OfVersion2GivesTheLeafAndAllAncestors) {
  FakeCgroups host("0::/job.slice/step\n", kMountV2);
  host.Put("job.slice/step/cgroup.procs", "700\n");
  const auto chain = FindCgroup(host.env(), kTraining, "memory");
  ASSERT_TRUE(chain.ok());
  EXPECT_TRUE(chain->v2);
  EXPECT_EQ(Names(*chain), (StringList{"/job.slice/step", "/job.slice", "/"}));
  EXPECT_EQ(chain->levels[0].folder, host.folder("/job.slice/step"));
  EXPECT_TRUE(chain->exact);
  EXPECT_FALSE(chain->ancestors_hidden);
  EXPECT_TRUE(chain->top_is_host);
}

TEST(FindCgroup, OfAHybridHostTakesEachControllerWhereItIs) {
  FakeCgroups host("4:memory:/slurm/job_1\n3:cpu,cpuacct:/cpu_job\n0::/user.slice\n", kMountsV1);
  host.Put("memory/slurm/job_1/memory.usage_in_bytes", "1\n");
  host.Put("cpu/cpu_job/cpu.stat", "");
  host.Put("unified/user.slice/cgroup.procs", "700\n");
  const auto memory = FindCgroup(host.env(), kTraining, "memory");
  ASSERT_TRUE(memory.ok());
  EXPECT_FALSE(memory->v2);
  EXPECT_EQ(Names(*memory), (StringList{"/slurm/job_1", "/slurm", "/"}));
  const auto cpu = FindCgroup(host.env(), kTraining, "cpu");
  ASSERT_TRUE(cpu.ok());
  EXPECT_EQ(cpu->levels[0].folder, host.folder("/cpu/cpu_job"));
  const auto io = FindCgroup(host.env(), kTraining, "blkio");  // not in the list: v2 has it
  ASSERT_TRUE(io.ok());
  EXPECT_TRUE(io->v2);
  EXPECT_EQ(io->levels[0].name, "/user.slice");
}

TEST(FindCgroup, OfAPathWithoutItsSlashGivesTheMountPoint) {
  using std::string_literals::operator""s;
  for (const std::string& path : {""s, "job"s, "job/step"s, ":/step/"s, "\0/step"s}) {
    FakeCgroups host("0::" + path + "\n", kMountV2);
    host.Write("sys/fs/cgroupjob/step/cgroup.procs", "700\n");  // beside the mount, not below it
    host.Put("job/step/cgroup.procs", "700\n");
    const auto chain = FindCgroup(host.env(), kTraining, "memory");
    ASSERT_TRUE(chain.ok()) << path;
    EXPECT_EQ(Names(*chain), (StringList{"/"})) << path;
    EXPECT_FALSE(chain->exact) << path;
  }
}

TEST(FindCgroup, InANamespaceSaysThatAncestorsAreHidden) {
  FakeCgroups host("0::/\n", kMountV2, "cgroup:[4026532600]");
  host.Put("cgroup.procs", "1\n700\n");
  host.Put("cgroup.events", "populated 1\n");
  const auto chain = FindCgroup(host.env(), kTraining, "memory");
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ(Names(*chain), (StringList{"/"}));
  EXPECT_TRUE(chain->exact);
  EXPECT_TRUE(chain->ancestors_hidden);
  EXPECT_FALSE(chain->top_is_host);
}

TEST(FindCgroup, BelowABindMountStripsItsRootByWholeNames) {
  const std::string mounts = "30 29 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
  FakeCgroups inside("0::/docker/abc/worker\n", mounts);
  inside.Put("worker/memory.current", "1\n");
  const auto chain = FindCgroup(inside.env(), kTraining, "memory");
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ(Names(*chain), (StringList{"/docker/abc/worker", "/docker/abc"}));
  EXPECT_TRUE(chain->exact);
  EXPECT_TRUE(chain->ancestors_hidden);

  FakeCgroups other("0::/docker/abcdef\n", mounts);
  other.Put("cgroup.procs", "1\n");
  const auto fallback = FindCgroup(other.env(), kTraining, "memory");
  ASSERT_TRUE(fallback.ok());
  EXPECT_EQ(Names(*fallback), (StringList{"/docker/abc"}));
  EXPECT_FALSE(fallback->exact);  // not the process's own, and said so
}

TEST(FindCgroup, FallsBackToTheMountPointThatHoldsTheProcess) {
  // The path is the host's word, the mount shows the container's cgroup at its point.
  FakeCgroups host("0::/kubepods/pod1/c1\n",
                   "30 29 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  host.Put("cgroup.procs", "1\n700\n");
  host.Put("cpu.max", "200000 100000\n");
  const auto chain = FindCgroup(host.env(), kTraining, "cpu");
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ(chain->levels.size(), 1U);
  EXPECT_TRUE(chain->exact);
  EXPECT_TRUE(chain->ancestors_hidden);
  // Outside of the reader's namespace.
  host.Write("proc/700/cgroup", "0::/../other\n");
  host.Put("cgroup.procs", "1\n");
  const auto outside = FindCgroup(host.env(), kTraining, "cpu");
  ASSERT_TRUE(outside.ok());
  EXPECT_FALSE(outside->exact);
}

TEST(FindCgroup, TakesTheMountThatShowsMost) {
  FakeCgroups host("0::/a/b\n",
                   "29 22 0:23 /a/b /mnt/part\\040one rw - cgroup2 cgroup2 rw\n"
                   "30 22 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  host.Put("a/b/cgroup.procs", "700\n");
  const auto chain = FindCgroup(host.env(), kTraining, "memory");
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ(chain->levels.size(), 3U);
}

TEST(FindCgroup, SaysWhenNothingIsMounted) {
  const FakeCgroups host("0::/a\n", "20 1 0:2 / / rw - ext4 /dev/sda1 rw\n");
  const auto chain = FindCgroup(host.env(), kTraining, "memory");
  ASSERT_FALSE(chain.ok());
  EXPECT_THAT(chain.error().Message(), testing::HasSubstr("/sys/fs/cgroup"));
  EXPECT_FALSE(FindCgroup(host.env(), 701, "memory").ok());
}

TEST(JobCgroup, FollowsAMoveButNotADeadProcess) {
  FakeCgroups host("0::/a\n", kMountV2);
  host.Put("a/cgroup.procs", "700\n");
  host.Put("b/cgroup.procs", "700\n");
  SourceBench bench = host.Bench();
  auto job = JobCgroup::Make(bench.context(), "memory");
  ASSERT_TRUE(job.ok());
  EXPECT_FALSE(job->Refresh(0));
  host.Write("proc/700/cgroup", "0::/b\n");
  EXPECT_FALSE(job->Refresh(1 * base::kNsPerSecond));  // not yet
  EXPECT_TRUE(job->Refresh(JobCgroup::kPeriodNs));
  EXPECT_EQ(job->chain().levels[0].name, "/b");
  host.Write("proc/700/cgroup", "0::/\n");
  host.Write("proc/700/stat",
             "700 (python) Z 1 700 700 0 -1 4 1 2 3 4 5 6 7 8 20 0 9 0 12345 1000 77 18446 1\n");
  EXPECT_FALSE(job->Refresh(3 * JobCgroup::kPeriodNs));
  EXPECT_EQ(job->chain().levels[0].name, "/b");
}

TEST(JobCgroup, IsRefusedInTheHostsRoot) {
  FakeCgroups host("0::/\n", kMountV2);
  host.Put("cgroup.procs", "700\n");
  SourceBench bench = host.Bench();
  const auto job = JobCgroup::Make(bench.context(), "memory");
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().Message(), testing::HasSubstr("of its own for memory: "));
  EXPECT_THAT(job.error().Message(), testing::HasSubstr("root cgroup"));
  // What exists in cgroup v2 alone has no controller to name.
  const auto any = JobCgroup::Make(bench.context(), "");
  ASSERT_FALSE(any.ok());
  EXPECT_THAT(any.error().Message(), testing::HasSubstr("of its own in cgroup v2: "));
}

TEST(CgroupLimits, AreTheTightestOfTheChain) {
  FakeCgroups host("0::/a/b\n", kMountV2);
  host.Put("a/b/memory.max", "max\n");
  host.Put("a/memory.max", "1073741824\n");
  host.Put("a/b/cpu.max", "max 100000\n");
  host.Put("a/cpu.max", "150000 100000\n");
  const auto chain = FindCgroup(host.env(), kTraining, "memory");
  ASSERT_TRUE(chain.ok());
  const auto memory = FindTightest(
      *chain, [](const CgroupLevel& l) { return ReadCgroupLimit(l.folder, "memory.max"); });
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->value, 1073741824.0);
  EXPECT_EQ(memory->level->name, "/a");
  const auto cpu =
      FindTightest(*chain, [&](const CgroupLevel& l) { return ReadCpuQuota(*chain, l); });
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->value, 1.5);
}

TEST(CpuLimit, TakesTheCpusetOfTheNearestCgroupThatHasOne) {
  FakeCgroups host("0::/a/b\n", kMountV2);
  host.Put("a/b/cgroup.procs", "700\n");
  host.Put("a/cpuset.cpus.effective", "0-2\n");
  const auto limit = ReadCpuLimit(host.env(), kTraining);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->cores, 3.0);
  EXPECT_EQ(limit->reason, "cpuset");
}

TEST(CpuLimit, ReadsAgainWhatWasChanged) {
  FakeCgroups host("0::/a\n", kMountV2);
  host.Put("a/cpu.max", "400000 100000\n");
  EXPECT_EQ(ReadCpuLimit(host.env(), kTraining)->cores, 4.0);
  host.Put("a/cpu.max", "50000 100000\n");
  EXPECT_EQ(ReadCpuLimit(host.env(), kTraining)->cores, 0.5);
  host.Put("a/cpu.max", "max 100000\n");
  EXPECT_EQ(ReadCpuLimit(host.env(), kTraining)->cores, 8.0);
}

}  // namespace
}  // namespace epochmeter::collect
