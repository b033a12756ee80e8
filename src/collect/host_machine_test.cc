// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <filesystem>

#include "collect/host_sources.h"
#include "collect/source_test_util.h"

namespace epochmeter::collect {
namespace {

using model::SeriesCondition;
using testing::HasSubstr;

std::vector<std::pair<std::string, std::string>> AttributesOf(const SourceBench& bench,
                                                              const std::string& entity) {
  for (const model::EntityDef& def : bench.registry.entities()) {
    if (def.name == entity) return def.attributes;
  }
  return {};
}

TEST(HostFs, IsTheTrainingsOwnSharedMemory) {
  TempFolder proc;
  proc.Write("700/root/dev/shm/x", "");
  SourceBench bench(proc.path(), "/nowhere", {.root_pid = 700, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kHostFs).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  struct statvfs info {};
  ASSERT_EQ(::statvfs(proc.path().c_str(), &info), 0);
  EXPECT_EQ(bench.Value("fs:/dev/shm", "fs_size_bytes"),
            static_cast<double>(info.f_blocks) * static_cast<double>(info.f_bsize));
  EXPECT_TRUE(bench.Value("fs:/dev/shm", "fs_used_bytes"));
  EXPECT_TRUE(bench.Value("fs:/dev/shm", "fs_free_bytes"));
  EXPECT_THAT(AttributesOf(bench, "fs:/dev/shm"),
              testing::Contains(testing::Pair("seen_by", "training")));
}

TEST(HostFs, SaysWhenThereIsNone) {
  TempFolder proc;
  proc.Write("700/root/etc/x", "");
  SourceBench bench(proc.path(), "/nowhere", {.root_pid = 700, .cgroup = ""});
  ASSERT_TRUE(bench.Make(kHostFs).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_TRUE(bench.last.values.empty());
  EXPECT_EQ(bench.State("fs_size_bytes")->condition, SeriesCondition::kNotSupported);
}

void PutNode(const TempFolder& sys, int node) {
  const std::string folder = "devices/system/node/node" + std::to_string(node);
  sys.Write(folder + "/meminfo", "\nNode 0 MemTotal:       1000 kB\nNode 0 MemFree:  200 kB\n");
  sys.Write(folder + "/numastat",
            "numa_hit 9\nnuma_miss 3\nnuma_foreign 1\ninterleave_hit 2\nlocal_node 8\n"
            "other_node 4\n");
}

TEST(HostNuma, ReadsEachNodeOfSeveral) {
  TempFolder sys;
  PutNode(sys, 0);
  PutNode(sys, 1);
  SourceBench bench("/nowhere", sys.path());
  ASSERT_TRUE(bench.Make(kHostNuma).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("numa:0", "numa_total_bytes"), 1000.0 * 1024);
  EXPECT_EQ(bench.Value("numa:1", "numa_free_bytes"), 200.0 * 1024);
  EXPECT_EQ(bench.Value("numa:1", "numa_miss_pages"), 3.0);
  EXPECT_EQ(bench.Value("numa:1", "numa_other_node_pages"), 4.0);
  sys.Remove("devices/system/node/node1/numastat");
  sys.Write("devices/system/node/node0/numastat", "numa_hit 1\n");
  SourceBench lacking("/nowhere", sys.path());
  ASSERT_TRUE(lacking.Make(kHostNuma).ok());
  ASSERT_TRUE(lacking.Sample(1).ok());
  EXPECT_FALSE(lacking.Value("numa:0", "numa_miss_pages"));
  EXPECT_EQ(lacking.State("numa_miss_pages")->condition, SeriesCondition::kNotSupported);
}

TEST(HostNuma, HasNoSeriesOnAMachineWithOneNode) {
  TempFolder sys;
  PutNode(sys, 0);
  SourceBench bench("/nowhere", sys.path());
  ASSERT_TRUE(bench.Make(kHostNuma).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_TRUE(bench.sink.records.empty());
}

TEST(HostEnergy, RisesOverAWrapOfItsRange) {
  TempFolder sys;
  for (const char* zone : {"intel-rapl:0", "intel-rapl:0:0", "intel-rapl-mmio:0"}) {
    const std::string folder = std::string("class/powercap/") + zone;
    sys.Write(folder + "/name", "package-0\n");
    sys.Write(folder + "/max_energy_range_uj", "10000000\n");
    sys.Write(folder + "/energy_uj", "9000000\n");
  }
  SourceBench bench("/nowhere", sys.path());
  ASSERT_TRUE(bench.Make(kHostEnergy).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_EQ(bench.Value("energy:0", "energy_j"), 9.0);
  EXPECT_EQ(bench.last.values.size(), 2U);  // not the second view of the package
  sys.Write("class/powercap/intel-rapl:0/energy_uj", "500000\n");
  ASSERT_TRUE(bench.Sample(11).ok());
  EXPECT_EQ(bench.Value("energy:0", "energy_j"), 10.5);
}

TEST(HostEnergy, SaysWhyItCannotBeRead) {
  TempFolder sys;
  SourceBench none("/nowhere", sys.path());
  EXPECT_FALSE(none.Make(kHostEnergy).ok());
  // A folder in the place of the file: open succeeds and read fails, whoever runs the test.
  sys.Write("class/powercap/intel-rapl:0/energy_uj/x", "");
  SourceBench bench("/nowhere", sys.path());
  ASSERT_TRUE(bench.Make(kHostEnergy).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_TRUE(bench.last.values.empty());
  EXPECT_THAT(bench.State("energy_j")->detail, HasSubstr("root only since Linux 5.10"));
}

TEST(HostRdma, CountsWordsOfFourBytesAndFindsDevicesThatComeLater) {
  TempFolder sys;
  SourceBench bench("/nowhere", sys.path());
  ASSERT_TRUE(bench.Make(kHostRdma).ok());
  ASSERT_TRUE(bench.Sample(1).ok());
  EXPECT_TRUE(bench.last.values.empty());
  const std::string port = "class/infiniband/mlx5_0/ports/1/";
  sys.Write(port + "counters/port_rcv_data", "1000\n");
  sys.Write(port + "counters/port_xmit_data", "4294967295\n");
  sys.Write(port + "link_layer", "InfiniBand\n");
  ASSERT_TRUE(bench.Sample(2).ok());
  EXPECT_TRUE(bench.last.values.empty());
  ASSERT_TRUE(bench.Sample(62).ok());
  EXPECT_EQ(bench.Value("rdma:mlx5_0/1", "rdma_receive_bytes"), 4000.0);
  EXPECT_FALSE(bench.Value("rdma:mlx5_0/1", "rdma_transmit_bytes"));  // stands at its end
  EXPECT_THAT(bench.State("rdma_transmit_bytes")->detail, HasSubstr("32 bits"));
  sys.Write(port + "counters/port_xmit_data", "5000000000\n");
  ASSERT_TRUE(bench.Sample(63).ok());
  EXPECT_EQ(bench.Value("rdma:mlx5_0/1", "rdma_transmit_bytes"), 2e10);
}

}  // namespace
}  // namespace epochmeter::collect
