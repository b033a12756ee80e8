// SPDX-License-Identifier: Apache-2.0
// What all imports of other tools' files share, mostly by the CSV of nvidia-smi.
#include "ingest/foreign_import_test_util.h"

namespace epochmeter::ingest {
namespace {

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

TEST_F(ForeignImport, NvidiaSmiCsvOfLinksLimitsErrorsAndStates) {
  Import(
      "index, pstate, fan.speed [%], pcie.link.gen.current, pcie.link.width.max, "
      "utilization.encoder [%], ecc.errors.uncorrected.volatile.total, retired_pages.pending, "
      "power.limit [W], enforced.power.limit [W], clocks.max.sm [MHz], "
      "clocks_event_reasons_counters.sync_boost [us]\n"
      "0, P8, 105 %, 1, 16, 3 %, 2, Yes, 700.00 W, 650.00 W, 1980 MHz, 1500000 us\n"
      "0, P0, [N/A], 5, 16, 0 %, 2, No, 700.00 W, 650.00 W, 1980 MHz, 1500000 us\n"
      "0, P32, 30 %, 0, 16, 0 %, 2, No, 700.00 W, 650.00 W, 1980 MHz, 1500000 us\n");
  EXPECT_EQ(Values("gpu:0", "performance_state"), (Doubles{8, 0})) << "32 is no state";
  EXPECT_EQ(Values("gpu:0", "fan_speed_ratio"), (Doubles{1.05, 0.3}));
  EXPECT_EQ(Values("gpu:0", "pcie_link_generation"), (Doubles{1, 5})) << "there is no 0";
  EXPECT_EQ(Values("gpu:0", "pcie_link_max_width"), (Doubles{16, 16, 16}));
  EXPECT_EQ(Values("gpu:0", "encoder_utilization_ratio"), (Doubles{0.03, 0, 0}));
  EXPECT_EQ(Values("gpu:0", "ecc_uncorrected_volatile_errors"), (Doubles{2, 2, 2}));
  EXPECT_EQ(Values("gpu:0", "retired_pages_pending"), (Doubles{1, 0, 0}));
  EXPECT_EQ(Values("gpu:0", "power_limit_requested_w"), (Doubles{700, 700, 700}));
  EXPECT_EQ(Values("gpu:0", "power_limit_w"), (Doubles{650, 650, 650}));
  EXPECT_EQ(Values("gpu:0", "sm_clock_max_hz"), (Doubles{1980e6, 1980e6, 1980e6}));
  EXPECT_EQ(Values("gpu:0", "throttle_sync_boost_s"), (Doubles{1.5, 1.5, 1.5}));
  EXPECT_EQ(Loss("value.out_of_range")->count, 2U);
  EXPECT_EQ(Loss("import.unknown_column"), nullptr);
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
      "timestamp, index, utilization.gpu [%], clocks.applications.graphics [MHz]\r\n"
      "2026/08/24 10:11:12.000, 0, 82 %, 1980 MHz\r\n"
      "2026/08/24 10:11:13.000, 0, 8\r\n"
      "2026/08/24 10:12026/08/24 10:11:13.000, 0, 83 %, 1980 MHz\r\n"
      "2026/08/24 10:11:14.000, 0, eighty, 1980 MHz\r\n"
      "timestamp, index, utilization.gpu [%], clocks.applications.graphics [MHz]\r\n"
      "2026/08/24 10:11:15.000, 0, 3710 %, 1980 MHz\r\n"
      "2026/08/24 10:11:16.000, 0, 84 %, 1980 MHz\r\n");
  EXPECT_EQ(Values("gpu:0", "utilization_ratio"), (Doubles{0.82, 0.84}));
  EXPECT_EQ(summary_.bad_lines, 2U);
  ASSERT_NE(Loss("import.bad_line"), nullptr);
  EXPECT_EQ(Loss("import.bad_line")->count, 2U);
  EXPECT_NE(Loss("import.bad_line")->detail.find("line 3"), std::string::npos);
  EXPECT_EQ(Loss("import.bad_value")->count, 1U);
  EXPECT_EQ(Loss("value.out_of_range")->count, 1U);
  ASSERT_NE(Loss("import.unknown_column"), nullptr);
  EXPECT_EQ(Loss("import.unknown_column")->detail, "columns: clocks.applications.graphics [MHz]");
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

TEST_F(ForeignImport, ATimeThatCantBeCostsItsLineAndNoOther) {
  Import(
      "timestamp, index, utilization.gpu [%]\n"
      "1971/01/01 10:11:12.000, 0, 1 %\n2026/08/24 10:11:12.000, 0, 2 %\n"
      "2190/08/24 10:11:13.000, 0, 3 %\n1971/01/01 10:11:14.000, 0, 4 %\n");
  EXPECT_EQ(Values("gpu:0", "utilization_ratio"), (std::vector<double>{0.01, 0.04}));
  EXPECT_EQ(Loss("run.undefined_ids"), nullptr);
  EXPECT_EQ(Loss("run.impossible_times"), nullptr);
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
