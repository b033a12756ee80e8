// SPDX-License-Identifier: Apache-2.0
// Imports of other tools' files, each written here in the shape that the tool gives.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "ingest/importers.h"
#include "ingest/wall_time.h"
#include "model/run_builder.h"

namespace epochmeter::ingest {
namespace {

using model::Scope;
using model::SeriesCondition;

constexpr int64_t kSecond = 1'000'000'000;
// 2026-08-24T10:11:12Z
constexpr int64_t kWall = 1787566272 * kSecond;

class ForeignImport : public testing::Test {
 protected:
  void SetUp() override { SetZone("UTC"); }
  void TearDown() override {
    std::filesystem::remove(path_);
    SetZone("UTC");
  }
  static void SetZone(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }

  // Writes the text as a file that was last changed at `modified`.
  void Write(const std::string& text, int64_t modified_s = 1787566300) {
    std::ofstream(path_, std::ios::binary) << text;
    const timespec times[2] = {{.tv_sec = modified_s, .tv_nsec = 0},
                               {.tv_sec = modified_s, .tv_nsec = 0}};
    utimensat(AT_FDCWD, path_.c_str(), times, 0);
  }
  void Import(const std::string& text, const ImportOptions& options = {}) {
    Write(text);
    const auto head = ReadSourceHead(path_);
    ASSERT_TRUE(head.ok());
    const auto found = RecogniseSource(*head);
    ASSERT_EQ(found.size(), 1U);
    format_ = found[0]->name;
    Import(*found[0], options);
  }
  void ImportAs(std::string_view format, const std::string& text,
                const ImportOptions& options = {}) {
    Write(text);
    Import(*FindImporter(format), options);
  }
  void Import(const ImporterDef& importer, const ImportOptions& options) {
    model::MemorySink sink;
    const auto summary = importer.Import(path_, options, sink);
    ASSERT_TRUE(summary.ok()) << summary.error().Message();
    summary_ = *summary;
    model::RunBuilder builder;
    for (const auto& record : sink.records) builder.Write(record);
    run_ = builder.Finish();
  }

  const model::EntityDef* Entity(Scope scope, std::string_view name) const {
    for (const auto& entity : run_.entities) {
      if (entity.scope == scope && entity.name == name) return &entity;
    }
    return nullptr;
  }
  std::optional<model::SeriesId> Series(std::string_view name, std::string_view field) const {
    for (const auto& entity : run_.entities) {
      if (entity.name == name) return run_.FindSeries(entity.id, field);
    }
    return std::nullopt;
  }
  std::vector<double> Values(std::string_view name, std::string_view field) const {
    const auto series = Series(name, field);
    return series ? run_.store->Read(*series, {}).value().value : std::vector<double>{};
  }
  std::vector<int64_t> Times(std::string_view name, std::string_view field) const {
    const auto series = Series(name, field);
    return series ? run_.store->Read(*series, {}).value().t_ns : std::vector<int64_t>{};
  }
  const model::Loss* Loss(std::string_view kind) const {
    for (const auto& loss : run_.losses) {
      if (loss.kind == kind) return &loss;
    }
    return nullptr;
  }
  std::optional<SeriesCondition> LastCondition(std::string_view name,
                                               std::string_view field) const {
    const auto series = Series(name, field);
    std::optional<SeriesCondition> last;
    for (const auto& state : run_.states) {
      if (series && state.series == *series) last = state.condition;
    }
    return last;
  }

  const std::string path_ = testing::TempDir() + "/foreign_import_" + std::to_string(getpid());
  std::string_view format_;
  ImportSummary summary_;
  model::Run run_;
};

using Doubles = std::vector<double>;

TEST_F(ForeignImport, NvidiaSmiCsvWithUnitsInCellsAndHeader) {
  Import(
      "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"
      "2026/08/24 10:11:12.000, 0, GPU-a, NVIDIA H100, 82 %, 40960 MiB, 512.25 W\n"
      "2026/08/24 10:11:12.003, 1, GPU-b, NVIDIA H100, 0 %, 4 MiB, 70.00 W\n"
      "2026/08/24 10:11:13.000, 0, GPU-a, NVIDIA H100, 84, 40961, 513.50\n");
  EXPECT_EQ(format_, "nvidia-smi-csv");
  EXPECT_EQ(run_.WallNs(0), kWall);
  EXPECT_EQ(Values("GPU-a", "utilization_ratio"), (Doubles{0.82, 0.84}));
  EXPECT_EQ(Values("GPU-a", "memory_used_bytes"), (Doubles{40960 * 1048576.0, 40961 * 1048576.0}));
  EXPECT_EQ(Values("GPU-b", "power_w"), (Doubles{70}));
  EXPECT_EQ(Times("GPU-a", "power_w"), (std::vector<int64_t>{0, kSecond}));
  const auto& series = run_.series[*Series("GPU-a", "power_w")];
  EXPECT_EQ(series.period_ns, kSecond);
  EXPECT_EQ(series.metric.source, "nvidia-smi query-gpu power.draw");
  EXPECT_EQ(summary_.bad_lines, 0U);
  EXPECT_TRUE(run_.losses.empty());
}

TEST_F(ForeignImport, NvidiaSmiCsvKnowsOldAndNewNames) {
  for (const char* name : {"clocks_throttle_reasons.active", "clocks_event_reasons.active"}) {
    Import("index, utilization.gpu [%], " + std::string(name) +
           "\n0, 1 %, 0x0000000000000004\n0, 1 %, 0x0000000000000000\n");
    EXPECT_EQ(Values("gpu:0", "throttle_reasons"), (Doubles{4, 0})) << name;
  }
  Import(
      "index, power.draw.average [W], power.draw.instant [W], clocks.sm [MHz]\n"
      "0, 100.00 W, 120.00 W, 1980 MHz\n");
  EXPECT_EQ(Values("gpu:0", "power_average_w"), (Doubles{100}));
  EXPECT_EQ(Values("gpu:0", "power_instant_w"), (Doubles{120}));
  EXPECT_EQ(Values("gpu:0", "sm_clock_hz"), (Doubles{1980e6}));
}

TEST_F(ForeignImport, WordsInPlaceOfNumbersBecomeConditionsNotZeros) {
  Import(
      "index, utilization.gpu [%], power.draw [W], temperature.memory, memory.used [MiB]\n"
      "0, [N/A], [Unknown Error], [Not Supported], [GPU is lost]\n"
      "0, [N/A], 70.00 W, N/A, [Insufficient Permissions]\n");
  EXPECT_TRUE(Values("gpu:0", "utilization_ratio").empty());
  EXPECT_EQ(LastCondition("gpu:0", "utilization_ratio"), SeriesCondition::kNotSupported);
  EXPECT_EQ(LastCondition("gpu:0", "power_w"), SeriesCondition::kOk);
  EXPECT_EQ(LastCondition("gpu:0", "memory_used_bytes"), SeriesCondition::kNoPermission);
  EXPECT_EQ(Values("gpu:0", "power_w"), (Doubles{70}));
}

TEST_F(ForeignImport, BadLinesCostOnlyThemselves) {
  Import(
      "timestamp, index, utilization.gpu [%], fan.speed [%]\r\n"
      "2026/08/24 10:11:12.000, 0, 82 %, 30 %\r\n"
      "2026/08/24 10:11:13.000, 0, 8\r\n"
      "2026/08/24 10:12026/08/24 10:11:13.000, 0, 83 %, 30 %\r\n"
      "2026/08/24 10:11:14.000, 0, eighty, 30 %\r\n"
      "timestamp, index, utilization.gpu [%], fan.speed [%]\r\n"
      "2026/08/24 10:11:15.000, 0, 3710 %, 30 %\r\n"
      "2026/08/24 10:11:16.000, 0, 84 %, 30 %\r\n");
  EXPECT_EQ(Values("gpu:0", "utilization_ratio"), (Doubles{0.82, 0.84}));
  EXPECT_EQ(summary_.bad_lines, 2U);
  ASSERT_NE(Loss("import.bad_line"), nullptr);
  EXPECT_EQ(Loss("import.bad_line")->count, 2U);
  EXPECT_NE(Loss("import.bad_line")->detail.find("line 3"), std::string::npos);
  EXPECT_EQ(Loss("import.bad_value")->count, 1U);
  EXPECT_EQ(Loss("value.out_of_range")->count, 1U);
  ASSERT_NE(Loss("import.unknown_column"), nullptr);
  EXPECT_EQ(Loss("import.unknown_column")->detail, "columns: fan.speed [%]");
}

TEST_F(ForeignImport, DecimalCommasByteMarksAndWideCharacters) {
  const std::string text = "index, power.draw [W], memory.used [MiB]\r\n0, 130,44 W, 12 MiB\r\n";
  std::string wide = "\xFF\xFE";
  for (const char c : text) wide.append(1, c).append(1, '\0');
  for (const std::string& variant : {text, "\xEF\xBB\xBF" + text, wide}) {
    Import(variant);
    EXPECT_EQ(Values("gpu:0", "power_w"), (Doubles{130.44}));
    EXPECT_EQ(Values("gpu:0", "memory_used_bytes"), (Doubles{12 * 1048576.0}));
    EXPECT_EQ(summary_.bad_lines, 0U);
  }
}

TEST_F(ForeignImport, CsvWithoutHeaderNeedsItsColumns) {
  const std::string text =
      "2026/08/24 10:11:12.000, 0, 82, 100\n2026/08/24 10:11:13.000, 0, 83, 101\n";
  Write(text);
  model::MemorySink sink;
  const auto refused = FindImporter("nvidia-smi-csv")->Import(path_, {}, sink);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().what_to_do.find("--columns"), std::string::npos);
  EXPECT_TRUE(sink.records.empty());
  ImportAs("nvidia-smi-csv", text, {.columns = "timestamp,index,utilization.gpu,memory.used"});
  EXPECT_EQ(Values("gpu:0", "utilization_ratio"), (Doubles{0.82, 0.83}));
  EXPECT_EQ(Values("gpu:0", "memory_used_bytes"), (Doubles{100 * 1048576.0, 101 * 1048576.0}));
}

TEST_F(ForeignImport, UnnamedGpusAreNumberedByTheirOrderInASample) {
  std::string text = "timestamp, utilization.gpu [%]\n";
  for (int s = 12; s < 32; ++s) {
    const std::string second = "2026/08/24 10:11:" + std::to_string(s);
    text += second + ".100, 10 %\n";
    if (s != 20) text += second + ".104, 20 %\n";
    text += second + ".108, 30 %\n";
  }
  Import(text);
  for (int gpu = 0; gpu < 3; ++gpu) {
    const Doubles values = Values("gpu:" + std::to_string(gpu), "utilization_ratio");
    EXPECT_EQ(values, Doubles(19, (gpu + 1) / 10.0)) << gpu;
  }
  EXPECT_EQ(Loss("import.unnamed_gpu")->count, 57U);
  ASSERT_NE(Loss("import.unnamed_rows"), nullptr) << "the torn sample can't be told apart";
  EXPECT_EQ(Loss("import.unnamed_rows")->count, 2U);
}

TEST_F(ForeignImport, LocalTimesAreReadInTheProcesssZone) {
  const std::string text =
      "timestamp, index, utilization.gpu [%]\n2026/08/24 10:11:12.000, 0, 82 %\n";
  SetZone("<+0800>-08:00");
  Import(text);
  EXPECT_EQ(run_.WallNs(0), kWall - 8 * 3600 * kSecond);
  ASSERT_EQ(summary_.notes.size(), 1U);
  EXPECT_NE(summary_.notes[0].find("--tz"), std::string::npos);
}

TEST_F(ForeignImport, TheHourThatComesTwiceDoesNotFall) {
  // A zone with summer time until the last Sunday of October, 03:00.
  SetZone("CET-1CEST,M3.5.0,M10.5.0/3");
  std::string text = "timestamp, index, utilization.gpu [%]\n";
  for (const char* time :
       {"02:00:00", "02:30:00", "02:59:30", "02:00:00", "02:30:00", "03:00:00"}) {
    text += "2026/10/25 " + std::string(time) + ".000, 0, 1 %\n";
  }
  Import(text);
  std::vector<int64_t> minutes;
  for (const int64_t t_ns : Times("gpu:0", "utilization_ratio")) {
    minutes.push_back(t_ns / (60 * kSecond));
  }
  EXPECT_EQ(minutes, (std::vector<int64_t>{0, 30, 59, 60, 90, 120}));
  EXPECT_EQ(Loss("import.time_back"), nullptr);
}

TEST_F(ForeignImport, AClockSetBackIsToldAndMovesNothingBefore) {
  Import(
      "timestamp, index, utilization.gpu [%]\n"
      "2026/08/24 10:11:12.000, 0, 1 %\n2026/08/24 10:11:13.000, 0, 2 %\n"
      "2026/08/24 09:00:00.000, 0, 3 %\n2026/08/24 09:00:01.000, 0, 4 %\n");
  EXPECT_EQ(Times("gpu:0", "utilization_ratio"),
            (std::vector<int64_t>{0, kSecond, 2 * kSecond, 3 * kSecond}));
  ASSERT_NE(Loss("import.time_back"), nullptr);
  EXPECT_EQ(Loss("import.time_back")->count, 1U);
}

TEST_F(ForeignImport, ComputeAppsBecomeProcesses) {
  Import(
      "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
      "2026/08/24 10:11:12.000, GPU-a, 4242, python, 2566 MiB\n"
      "2026/08/24 10:11:12.000, GPU-a, 4243, [Not Found], [N/A]\n");
  EXPECT_EQ(format_, "nvidia-smi-apps");
  EXPECT_EQ(Values("GPU-a/4242", "gpu_memory_bytes"), (Doubles{2566 * 1048576.0}));
  EXPECT_TRUE(Values("GPU-a/4243", "gpu_memory_bytes").empty());
}

TEST_F(ForeignImport, DmonWithDateAndRepeatedHeader) {
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

TEST_F(ForeignImport, DmonWithoutTimesEndsWhenTheFileWasWritten) {
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

TEST_F(ForeignImport, DmonWithTimeOnlyPassesMidnight) {
  Import(
      "#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n"
      " 23:59:59      0    100\n 00:00:00      0    101\n");
  EXPECT_EQ(Times("gpu:0", "power_w"), (std::vector<int64_t>{0, kSecond}));
  // The file was written on the 24th: the first line is of the 23rd.
  EXPECT_EQ(run_.WallNs(kSecond), (1787566272 / 86400 * 86400) * kSecond);
}

TEST_F(ForeignImport, DmonPerformanceMetrics) {
  Import(
      "# gpu    pwr     smutil     mmaact     nvltx\n# Idx      W      GPM:%      GPM:%  "
      "GPM:MiB/s\n"
      "    0    100         40         30      1000\n    1    100          -          -        "
      "-\n");
  EXPECT_EQ(Values("gpu:0", "sm_active_ratio"), (Doubles{0.4}));
  EXPECT_EQ(Values("gpu:0", "tensor_active_ratio"), (Doubles{0.3}));
  EXPECT_EQ(Values("gpu:0", "nvlink_transmit_bytes_per_s"), (Doubles{1000 * 1048576.0}));
}

TEST_F(ForeignImport, PmonMemoryOfProcesses) {
  Import(
      "# gpu         pid   type     sm    mem     fb    command\n"
      "# Idx           #    C/G      %      %     MB    name\n"
      "    0       4242     C     99     10   2566    python train.py\n"
      "    1          -     -      -      -      -    -\n");
  EXPECT_EQ(Values("gpu:0/4242", "gpu_memory_bytes"), (Doubles{2566 * 1048576.0}));
  EXPECT_EQ(summary_.bad_lines, 0U);
}

TEST_F(ForeignImport, TableOfPlainNvidiaSmi) {
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

TEST_F(ForeignImport, TableOfNvitop) {
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

TEST_F(ForeignImport, DcgmiDmonWithTextsAndInstances) {
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

TEST_F(ForeignImport, PaddleGpuLogOfThreeTables) {
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

TEST_F(ForeignImport, NvitopCollectorTakesLastReadingsOnly) {
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

TEST_F(ForeignImport, TrackioRowsOfOneRun) {
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

TEST_F(ForeignImport, NothingIsWrittenWhenNothingIsUsable) {
  for (const ImporterDef& importer : Importers()) {
    Write("this is a letter, not a table\n");
    model::MemorySink sink;
    EXPECT_FALSE(importer.Import(path_, {}, sink).ok()) << importer.name;
    EXPECT_TRUE(sink.records.empty()) << importer.name;
    EXPECT_FALSE(importer.Import(path_ + ".none", {}, sink).ok()) << importer.name;
  }
  const auto head = ReadSourceHead(path_);
  ASSERT_TRUE(head.ok());
  EXPECT_TRUE(RecogniseSource(*head).empty());
}

}  // namespace
}  // namespace epochmeter::ingest
