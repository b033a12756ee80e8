// SPDX-License-Identifier: Apache-2.0
// Imports of single tools' files, each written here in the shape that the tool gives.
#include "base/strings.h"
#include "ingest/foreign_import_test_util.h"

namespace epochmeter::ingest {
namespace {

class ForeignTools : public ForeignImport {};

TEST_F(ForeignTools, ComputeAppsBecomeProcesses) {
  Import(
      "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
      "2026/08/24 10:11:12.000, GPU-a, 4242, python, 2566 MiB\n"
      "2026/08/24 10:11:12.000, GPU-a, 4243, [Not Found], [N/A]\n");
  EXPECT_EQ(format_, "nvidia-smi-apps");
  EXPECT_EQ(Values("GPU-a/4242", "gpu_memory_bytes"), (Doubles{2566 * 1048576.0}));
  EXPECT_TRUE(Values("GPU-a/4243", "gpu_memory_bytes").empty());
}

TEST_F(ForeignTools, DmonWithDateAndRepeatedHeader) {
  const std::string header =
      "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb  rxpci\n"
      "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz     MB   "
      "MB/s\n";
  Import(
      header +
      " 20260824   10:11:12      0    631     63     57    100     10   2619   1980   2000    10\n"
      " 20260824   10:11:12      1     70     30      -      0      0   2619    345      4     "
      "0\n" +
      header +
      " 20260824   10:11:13      0    632     64     57     99     10   2619   1980   2000    "
      "10\n");
  EXPECT_EQ(format_, "nvidia-smi-dmon");
  EXPECT_EQ(run_.WallNs(0), kWall);
  EXPECT_EQ(Values("gpu:0", "power_w"), (Doubles{631, 632}));
  EXPECT_EQ(Values("gpu:0", "utilization_ratio"), (Doubles{1, 0.99}));
  EXPECT_EQ(Values("gpu:0", "memory_used_bytes"), (Doubles{2000 * 1048576.0, 2000 * 1048576.0}));
  EXPECT_EQ(LastCondition("gpu:1", "memory_temperature_c"), SeriesCondition::kNotSupported);
  EXPECT_EQ(Loss("import.unknown_column")->detail, "columns: rxpci");
}

TEST_F(ForeignTools, DmonWithoutTimesEndsWhenTheFileWasWritten) {
  const std::string text =
      "# gpu    pwr     sm\n# Idx      W      %\n"
      "    0    100     10\n    1    200     20\n    0    101     11\n    1    201     21\n";
  Import(text);
  EXPECT_EQ(Times("gpu:1", "power_w"), (std::vector<int64_t>{0, kSecond}));
  EXPECT_EQ(run_.WallNs(kSecond), 1787566300 * kSecond);
  EXPECT_EQ(Loss("import.assumed_time")->count, 4U);
  Import(text, {.interval_s = 5, .start_wall_ns = kWall});
  EXPECT_EQ(Times("gpu:1", "power_w"), (std::vector<int64_t>{0, 5 * kSecond}));
  EXPECT_EQ(run_.WallNs(0), kWall);
}

TEST_F(ForeignTools, DmonWithTimeOnlyPassesMidnight) {
  Import(
      "#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n"
      " 23:59:59      0    100\n 00:00:00      0    101\n");
  EXPECT_EQ(Times("gpu:0", "power_w"), (std::vector<int64_t>{0, kSecond}));
  // The file was written on the 24th: the first line is of the 23rd.
  EXPECT_EQ(run_.WallNs(kSecond), (1787566272 / 86400 * 86400) * kSecond);
}

TEST_F(ForeignTools, DmonPerformanceMetrics) {
  Import(
      "# gpu    pwr     smutil     mmaact     nvltx\n# Idx      W      GPM:%      GPM:%  "
      "GPM:MiB/s\n"
      "    0    100         40         30      1000\n    1    100          -          -        "
      "-\n");
  EXPECT_EQ(Values("gpu:0", "sm_active_ratio"), (Doubles{0.4}));
  EXPECT_EQ(Values("gpu:0", "tensor_active_ratio"), (Doubles{0.3}));
  EXPECT_EQ(Values("gpu:0", "nvlink_transmit_bytes_per_s"), (Doubles{1000 * 1048576.0}));
}

TEST_F(ForeignTools, PmonMemoryOfProcesses) {
  Import(
      "# gpu         pid   type     sm    mem     fb    command\n"
      "# Idx           #    C/G      %      %     MB    name\n"
      "    0       4242     C     99     10   2566    python train.py\n"
      "    1          -     -      -      -      -    -\n");
  EXPECT_EQ(Values("gpu:0/4242", "gpu_memory_bytes"), (Doubles{2566 * 1048576.0}));
  EXPECT_EQ(summary_.bad_lines, 0U);
}

TEST_F(ForeignTools, PmonNamesOfDamagedBytesAreText) {
  Import(
      "# gpu   mig    pid   type     fb    command\n"
      "# Idx     #      #    C/G     MB    name\n"
      "    0   \xFF\xD1   4242     C   2566    python\n"
      "    1   \xFF\xD1      -     -      -    -\n");
  for (const model::EntityDef& entity : run_.entities) {
    EXPECT_EQ(base::ToValidUtf8(entity.name), entity.name);
    for (const auto& [key, value] : entity.labels) EXPECT_EQ(base::ToValidUtf8(value), value);
  }
  EXPECT_EQ(run_.entities.size(), 2U);
}

TEST_F(ForeignTools, TableOfPlainNvidiaSmi) {
  const std::string table =
      "+-----------------------------------------------------------------------------+\n"
      "| NVIDIA-SMI 590.48.01   Driver Version: 590.48.01      CUDA Version: 13.1     |\n"
      "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |        0 |\n"
      "| N/A   41C    P0             69W /  700W |       4MiB /  81559MiB |     12%      Default "
      "|\n"
      "|    0   N/A  N/A      4242      C   python                          2566MiB |\n";
  Import("Mon Aug 24 10:11:12 2026       \n" + table + "Mon Aug 24 10:11:14 2026\n" + table);
  EXPECT_EQ(format_, "nvidia-smi-table");
  EXPECT_EQ(run_.WallNs(0), kWall);
  EXPECT_EQ(Values("gpu:0", "power_w"), (Doubles{69, 69}));
  EXPECT_EQ(Values("gpu:0", "utilization_ratio"), (Doubles{0.12, 0.12}));
  EXPECT_EQ(Values("gpu:0", "memory_used_bytes"), (Doubles{4 * 1048576.0, 4 * 1048576.0}));
  EXPECT_EQ(Times("gpu:0", "temperature_c"), (std::vector<int64_t>{0, 2 * kSecond}));
  ASSERT_NE(Entity(Scope::kGpu, "gpu:0"), nullptr);
  EXPECT_EQ(Entity(Scope::kGpu, "gpu:0")->attributes[0].second, "NVIDIA H100 80GB HBM3");
}

TEST_F(ForeignTools, TableOfNvitop) {
  Import(
      "Mon Aug 24 10:11:12 2026\n╒═══════════════╕\n│ NVITOP 1.7.0       Driver Version: 580.1 │\n"
      "│   3  GeForce RTX 2080 Ti   Off  │ 00000000:3B:00.0 Off │  N/A │ MEM: ███ 72.1% │\n"
      "│ 46%   51C    P2   79W / 250W │  7890MiB / 11264MiB │     35%      Default │ UTL: █ 35% "
      "│\n");
  EXPECT_EQ(Values("gpu:3", "power_w"), (Doubles{79}));
  EXPECT_EQ(Values("gpu:3", "memory_total_bytes"), (Doubles{11264 * 1048576.0}));
  EXPECT_EQ(Values("gpu:3", "utilization_ratio"), (Doubles{0.35}));
  EXPECT_EQ(Values("gpu:3", "temperature_c"), (Doubles{51}));
}

TEST_F(ForeignTools, DcgmiDmonWithTextsAndInstances) {
  Import(
      "#Entity   GPUTL     POWER     TOTEC     SMACT   DVNAM\n"
      "ID                  W         mJ\n"
      "GPU 0     82        512.250   200000    0.750   NVIDIA H100\n"
      "GPU-I 3   N/A       N/A       N/A       0.500   N/A\n"
      "GPU 0     83        512.500   712500    0.751   NVIDIA H100\n"
      "\n\ndmon was stopped do to receiving a signal\n");
  EXPECT_EQ(format_, "dcgmi-dmon");
  EXPECT_EQ(Values("gpu:0", "utilization_ratio"), (Doubles{0.82, 0.83}));
  EXPECT_EQ(Values("gpu:0", "energy_j"), (Doubles{200, 712.5}));
  EXPECT_EQ(Values("gpu:0", "sm_active_ratio"), (Doubles{0.75, 0.751}));
  const auto* instance = Entity(Scope::kMig, "gpu:0/GPU-I 3");
  ASSERT_NE(instance, nullptr) << "never the parent's number";
  EXPECT_EQ(Values(instance->name, "sm_active_ratio"), (Doubles{0.5}));
  EXPECT_EQ(Times("gpu:0", "power_w"), (std::vector<int64_t>{0, kSecond}));
}

TEST_F(ForeignTools, PaddleGpuLogOfThreeTables) {
  Import(
      "index,uuid,driver_version,name,gpu_serial,display_active,display_mode\n"
      "0,GPU-a,535.129.03,NVIDIA A100,1234,Disabled,Disabled\n\n"
      "pid,process_name,gpu_uuid,gpu_name,used_memory\n"
      "4242,/usr/bin/python,-u,GPU-a,NVIDIA A100,2566\n\n"
      "index,utilization_gpu,memory_total,memory_used,memory_free,timestamp\n"
      "0,97,81920,40960,40960,2026/08/24 10:11:12.000\n"
      "0,98,81920,40961,40959,2026/08/24 10:11:42.000\n0,9\n");
  EXPECT_EQ(format_, "paddle-gpu-log");
  EXPECT_EQ(Values("GPU-a", "utilization_ratio"), (Doubles{0.97, 0.98}));
  EXPECT_EQ(run_.series[*Series("GPU-a", "utilization_ratio")].period_ns, 30 * kSecond);
  EXPECT_EQ(Values("GPU-a/4242", "gpu_memory_bytes"), (Doubles{2566 * 1048576.0}));
  EXPECT_EQ(Entity(Scope::kGpu, "GPU-a")->labels[0].second, "0");
  EXPECT_EQ(summary_.bad_lines, 1U);
}

TEST_F(ForeignTools, NvitopCollectorTakesLastReadingsOnly) {
  Import(
      "time,r/host/cpu_percent (%)/last,r/cuda:0 (gpu:2)/gpu_utilization (%)/mean,"
      "r/cuda:0 (gpu:2)/gpu_utilization (%)/last,r/pid:42/cuda:0 (gpu:2)/gpu_memory (MiB)/last,"
      "r/timestamp\n"
      "2026-08-24 10:11:12.0,12.5,50.0,82.0,2566.0,1787566272.0\n"
      "2026-08-24 10:11:14.0,,50.0,nan,2566.0,1787566274.0\n");
  EXPECT_EQ(format_, "nvitop");
  EXPECT_EQ(run_.WallNs(0), kWall);
  EXPECT_EQ(Values("gpu:2", "utilization_ratio"), (Doubles{0.82}));
  EXPECT_EQ(Values("host", "cpu_used_ratio"), (Doubles{0.125}));
  EXPECT_EQ(Values("gpu:2/42", "gpu_memory_bytes").size(), 2U);
}

TEST_F(ForeignTools, TrackioRowsOfOneRun) {
  Import(
      "[{\"id\":1,\"timestamp\":\"2026-08-24T10:11:12+00:00\",\"run_name\":\"a\",\"metrics\":"
      "\"{\\\"gpu/0/utilization\\\":82,\\\"gpu/0/allocated_memory\\\":2}\"},\n"
      "{\"id\":2,\"timestamp\":\"2026-08-24T12:11:22+02:00\",\"run_name\":\"a\",\"step\":3,"
      "\"metrics\":\"{\\\"loss\\\":0.5,\\\"epoch\\\":1}\"},\n"
      "{\"id\":3,\"timestamp\":\"2026-08-24T10:11:23\",\"run_name\":\"b\",\"metrics\":\"{}\"}]\n");
  EXPECT_EQ(format_, "trackio");
  EXPECT_EQ(run_.WallNs(0), kWall);
  EXPECT_EQ(Values("gpu:0", "memory_used_bytes"), (Doubles{2147483648.0}));
  ASSERT_EQ(run_.events.size(), 1U);
  EXPECT_EQ(run_.events[0].t_ns, 10 * kSecond);
  EXPECT_EQ(run_.events[0].step, 3);
  EXPECT_EQ(run_.events[0].epoch, 1);
  EXPECT_EQ(run_.events[0].Number("scalar.loss"), 0.5);
  EXPECT_EQ(Loss("import.other_run")->count, 1U);
}

TEST_F(ForeignTools, DmonEnginesAndErrorCounters) {
  Import(
      "# gpu     sm    enc    dec    jpg    ofa   bar1  sbecc  dbecc    pci  txpci\n"
      "# Idx      %      %      %      %      %     MB   errs   errs   errs   MB/s\n"
      "    0     99     12      7      0      -      4      3      0      2     10\n");
  EXPECT_EQ(Values("gpu:0", "encoder_utilization_ratio"), (Doubles{0.12}));
  EXPECT_EQ(Values("gpu:0", "decoder_utilization_ratio"), (Doubles{0.07}));
  EXPECT_EQ(Values("gpu:0", "jpeg_utilization_ratio"), (Doubles{0}));
  EXPECT_EQ(LastCondition("gpu:0", "optical_flow_utilization_ratio"),
            SeriesCondition::kNotSupported);
  EXPECT_EQ(Values("gpu:0", "bar1_used_bytes"), (Doubles{4 * 1048576.0}));
  EXPECT_EQ(Values("gpu:0", "ecc_corrected_aggregate_errors"), (Doubles{3}));
  EXPECT_EQ(Values("gpu:0", "ecc_uncorrected_aggregate_errors"), (Doubles{0}));
  EXPECT_EQ(Values("gpu:0", "pcie_replays"), (Doubles{2}));
  ASSERT_NE(Loss("import.unknown_column"), nullptr);
  EXPECT_EQ(Loss("import.unknown_column")->detail, "columns: txpci");
}

TEST_F(ForeignTools, PmonUtilisationOfProcesses) {
  Import(
      "# gpu         pid   type     sm    mem    enc    dec    fb    command\n"
      "# Idx           #    C/G      %      %      %      %    MB    name\n"
      "    0       4242     C     99     10      -      -   2566    python\n"
      "    0       4243     C      -      -      -      -    512    python\n");
  EXPECT_EQ(Values("gpu:0/4242", "gpu_utilization_ratio"), (Doubles{0.99}));
  EXPECT_EQ(Values("gpu:0/4242", "gpu_memory_activity_ratio"), (Doubles{0.1}));
  EXPECT_TRUE(Values("gpu:0/4243", "gpu_utilization_ratio").empty());
  EXPECT_EQ(LastCondition("gpu:0/4243", "gpu_utilization_ratio"), SeriesCondition::kNotFound)
      << "the driver's window did not have it";
}

TEST_F(ForeignTools, DcgmiLinksLimitsAndErrors) {
  Import(
      "#Entity   PSTAT  FANSP  PCILG  PCILW  PMLMT    ESVTL  EDATL  RRP  MMTMP  FBRSV  PVIOL\n"
      "ID                                    W                                C\n"
      "GPU 0     0      130    5      16     650.000  2      0      1    0      512    77\n");
  EXPECT_EQ(Values("gpu:0", "performance_state"), (Doubles{0}));
  EXPECT_EQ(Values("gpu:0", "fan_speed_ratio"), (Doubles{1.3})) << "may exceed its usual highest";
  EXPECT_EQ(Values("gpu:0", "pcie_link_generation"), (Doubles{5}));
  EXPECT_EQ(Values("gpu:0", "pcie_link_width"), (Doubles{16}));
  EXPECT_EQ(Values("gpu:0", "power_limit_requested_w"), (Doubles{650}));
  EXPECT_EQ(Values("gpu:0", "ecc_corrected_volatile_errors"), (Doubles{2}));
  EXPECT_EQ(Values("gpu:0", "ecc_uncorrected_aggregate_errors"), (Doubles{0}));
  EXPECT_EQ(Values("gpu:0", "row_remap_pending"), (Doubles{1}));
  EXPECT_EQ(Values("gpu:0", "memory_reserved_bytes"), (Doubles{512 * 1048576.0}));
  EXPECT_TRUE(Values("gpu:0", "memory_temperature_c").empty()) << "0 is no thermometer";
  EXPECT_EQ(Loss("value.out_of_range")->count, 1U);
  EXPECT_EQ(Loss("import.unknown_column")->detail, "columns: PVIOL") << "us or ns by version";
}

TEST_F(ForeignTools, NvitopUtilisationOfProcessesAndFan) {
  Import(
      "r/cuda:0 (gpu:2)/fan_speed (%)/last,r/pid:42/cuda:0 (gpu:2)/gpu_sm_utilization (%)/last,"
      "r/pid:42/cuda:0 (gpu:2)/gpu_memory_utilization (%)/last,r/timestamp\n"
      "30.0,48.0,6.0,1787566272.0\n");
  EXPECT_EQ(Values("gpu:2", "fan_speed_ratio"), (Doubles{0.3}));
  EXPECT_EQ(Values("gpu:2/42", "gpu_utilization_ratio"), (Doubles{0.48}));
  EXPECT_EQ(Values("gpu:2/42", "gpu_memory_activity_ratio"), (Doubles{0.06}));
}

}  // namespace
}  // namespace epochmeter::ingest
