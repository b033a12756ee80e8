// SPDX-License-Identifier: Apache-2.0
// Sources with state: counters, limits, links, health and memory, through drivers old and new.
#include <gmock/gmock.h>
#include <time.h>

#include "collect/nvml/replay_fixture.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

class GroupsTest : public ReplayTest {
 protected:
  // Lets the play time pass second 1.
  static void PassSecondOne() {
    const timespec time{1, 20 * base::kNsPerMs};
    nanosleep(&time, nullptr);
  }
  std::vector<std::string> LossKinds() const {
    std::vector<std::string> kinds;
    for (const auto& loss : Records<model::Loss>()) kinds.push_back(loss.kind);
    return kinds;
  }
  std::string Attribute(const std::string& key, size_t device = 0) const {
    for (const auto& [name, value] : session_->devices()[device].attributes) {
      if (name == key) return value;
    }
    return {};
  }
};

TEST_F(GroupsTest, ReadsPcieLinkReplaysAndErrors) {
  Play(R"({"devices":{"count":1,"values":{"pcie_gen":1,"pcie_width":16,"pcie_gen_max":5,
      "pcie_width_max":16,"pcie_replay":20,"pcie_correctable_errors":3,"pcie_fatal_errors":1}}})");
  const auto samples = Sample(*MakeSource(kGpuPcie), 0);
  EXPECT_THAT(Value(samples, "gpu.pcie.link.generation"), Optional(1));
  EXPECT_THAT(Value(samples, "gpu.pcie.link.max_generation"), Optional(5));
  EXPECT_THAT(Value(samples, "gpu.pcie.link.width"), Optional(16));
  EXPECT_THAT(Value(samples, "gpu.pcie.replays"), Optional(20));
  EXPECT_THAT(Value(samples, "gpu.pcie.errors kind=correctable"), Optional(3));
  EXPECT_THAT(Value(samples, "gpu.pcie.errors kind=fatal"), Optional(1));
}

TEST_F(GroupsTest, RefusesPcieBytesWhereThe32BitCountersWrapBetweenReadings) {
  Play(R"({"devices":{"count":1,"values":{"pcie_gen_max":5,"pcie_width_max":16,
      "pcie_tx_bytes":1000,"pcie_rx_bytes":2000}}})");
  EXPECT_THAT(Sample(*MakeSource(kGpuPcieBytes), 0).values, IsEmpty());
  EXPECT_THAT(States("gpu.pcie.tx_total"),
              ElementsAre(HasSubstr("not_supported: the driver's 32-bit byte counters can wrap in "
                                    "0.07 s")));
}

TEST_F(GroupsTest, UndoesWrapsOfPcieBytesAndStartsAgainAfterALongGap) {
  Play(R"({"devices":{"count":1,"values":{"pcie_gen_max":1,"pcie_width_max":1,
      "pcie_tx_bytes":[[0,4294967000],[1,704]],"pcie_rx_bytes":[[0,100],[1,50100]]}}})");
  const auto source = MakeSource(kGpuPcieBytes);
  EXPECT_THAT(Value(Sample(*source, 0), "gpu.pcie.tx_total"), Optional(0));
  PassSecondOne();
  const auto samples = Sample(*source, 1);
  EXPECT_THAT(Value(samples, "gpu.pcie.tx_total"), Optional(1000));
  EXPECT_THAT(Value(samples, "gpu.pcie.rx_total"), Optional(50000));
  EXPECT_THAT(Value(Sample(*source, 60), "gpu.pcie.tx_total"), Optional(0));
  EXPECT_THAT(LossKinds(), ElementsAre("counter.gap", "counter.gap"));
}

TEST_F(GroupsTest, KeepsSentAndReceivedApartOnEveryLink) {
  Play(R"({"devices":{"count":2,"values":{"nvlink_tx_kib":7,"nvlink_rx_kib":11,
      "nvlink_links":18,"nvlink_state":1,"nvlink_speed_mbps":25000,
      "gpm.pcie_tx_mib_s":3,"gpm.pcie_rx_mib_s":5,"pcie_gen_max":1,"pcie_width_max":1,
      "pcie_tx_bytes":{"start":0,"per_s":1000000},"pcie_rx_bytes":{"start":0,"per_s":0}}}})");
  const auto nvlink = Sample(*MakeSource(kGpuNvlink), 0);
  EXPECT_THAT(Value(nvlink, "gpu.nvlink.tx"), Optional(7 * 1024));
  EXPECT_THAT(Value(nvlink, "gpu.nvlink.rx"), Optional(11 * 1024));
  EXPECT_THAT(Value(nvlink, "gpu.nvlink.links"), Optional(18));
  EXPECT_THAT(Value(nvlink, "gpu.nvlink.active_links"), Optional(18));
  EXPECT_THAT(Value(nvlink, "gpu.nvlink.speed"), Optional(25e9));
  const auto bytes = MakeSource(kGpuPcieBytes);
  Sample(*bytes, 0);
  PassSecondOne();
  const auto later = Sample(*bytes, 1);
  EXPECT_GT(Value(later, "gpu.pcie.tx_total").value_or(0), 900000);
  EXPECT_THAT(Value(later, "gpu.pcie.rx_total"), Optional(0));
}

TEST_F(GroupsTest, SaysOnceThatASingleGpuHasNoNvlink) {
  Play(R"({"devices":{"count":1,"values":{"temp_c":40}}})");
  const auto source = MakeSource(kGpuNvlink);
  for (double t_s : {0.0, 10.0, 20.0}) EXPECT_THAT(Sample(*source, t_s).values, IsEmpty());
  EXPECT_THAT(States("gpu.nvlink.tx"), ElementsAre(HasSubstr("this GPU has no NVLink")));
  EXPECT_EQ(Records<model::SeriesState>().size(), 2U) << "one for sent, one for received";
}

TEST_F(GroupsTest, ReadsTheByteCountersAndErrorsOfTheFifthNvlink) {
  Play(R"({"devices":{"count":2,"name":"NVIDIA B200","values":{"nvlink_version":5,
      "nvlink_links":18,"nvlink_state":1,"nvlink_speed_mbps":53125,"nvlink5_tx_bytes":7000,
      "nvlink5_rx_bytes":11000,"nvlink5_rx_errors":2,"nvlink5_tx_discards":3,
      "nvlink5_recoveries":4,"nvlink5_failed_recoveries":5}}})");
  const auto source = MakeSource(kGpuNvlink);
  const auto samples = Sample(*source, 0);
  EXPECT_THAT(Value(samples, "gpu.nvlink.tx", 1), Optional(7000)) << "bytes, not KiB";
  EXPECT_THAT(Value(samples, "gpu.nvlink.rx", 1), Optional(11000));
  EXPECT_THAT(Value(samples, "gpu.nvlink.links"), Optional(18));
  EXPECT_THAT(Value(samples, "gpu.nvlink.errors kind=receive"), Optional(2));
  EXPECT_THAT(Value(samples, "gpu.nvlink.errors kind=discard"), Optional(3));
  EXPECT_THAT(Value(samples, "gpu.nvlink.errors kind=link_recovered"), Optional(4));
  EXPECT_THAT(Value(samples, "gpu.nvlink.errors kind=link_lost"), Optional(5));
  EXPECT_EQ(Value(samples, "gpu.nvlink.errors kind=crc_flit"), std::nullopt);
}

TEST_F(GroupsTest, DropsTheSentinelsOfAnNvlinkCounter) {
  Play(R"({"devices":{"count":2,"name":"NVIDIA B200","values":{"nvlink_version":5,
      "nvlink5_tx_bytes":18446744073709551615,"nvlink5_rx_bytes":11000,
      "nvlink5_rx_errors":4294967295}}})");
  const auto samples = Sample(*MakeSource(kGpuNvlink), 0);
  EXPECT_EQ(Value(samples, "gpu.nvlink.tx"), std::nullopt);
  EXPECT_THAT(Value(samples, "gpu.nvlink.rx"), Optional(11000));
  EXPECT_EQ(Value(samples, "gpu.nvlink.errors kind=receive"), std::nullopt);
  EXPECT_THAT(LossKinds(), Each("value.out_of_range"));
}

TEST_F(GroupsTest, ReadsRetiredPagesUpToVolta) {
  const std::string values = R"("values":{"retired_pages_sbe":3,"retired_pages_dbe":1,
      "retired_pages_pending":1}}})";
  Play(R"({"devices":{"count":1,"name":"Tesla V100-SXM2-32GB",)" + values);
  auto samples = Sample(*MakeSource(kGpuHealth), 0);
  EXPECT_THAT(Value(samples, "gpu.retired_pages cause=single_bit"), Optional(3));
  EXPECT_THAT(Value(samples, "gpu.retired_pages cause=double_bit"), Optional(1));
  EXPECT_THAT(Value(samples, "gpu.retired_pages.pending"), Optional(1));
  Play(R"({"devices":{"count":1,"name":"NVIDIA H200",)" + values);
  samples = Sample(*MakeSource(kGpuHealth), 0);
  EXPECT_EQ(Value(samples, "gpu.retired_pages cause=double_bit"), std::nullopt);
}

TEST_F(GroupsTest, ReadsMemoryErrorsByCallWhereTheFieldsAreMissing) {
  Play(R"({"devices":{"count":1,"name":"Tesla V100-SXM2-32GB","values":{"ecc_mode":1,
      "ecc_corrected_volatile":4,"ecc_uncorrected_volatile":1,"ecc_corrected_aggregate":9,
      "ecc_uncorrected_aggregate":2}},
      "faults":[{"function":"field:3","return":3},{"function":"field:4","return":3},
                {"function":"field:5","return":3},{"function":"field:6","return":3}]})",
       0, "-470");
  const auto samples = Sample(*MakeSource(kGpuHealth), 0);
  EXPECT_THAT(Value(samples, "gpu.ecc.volatile error=corrected"), Optional(4));
  EXPECT_THAT(Value(samples, "gpu.ecc.volatile error=uncorrected"), Optional(1));
  EXPECT_THAT(Value(samples, "gpu.ecc.aggregate error=corrected"), Optional(9));
  EXPECT_THAT(Value(samples, "gpu.ecc.aggregate error=uncorrected"), Optional(2));
}

TEST_F(GroupsTest, ReadsTheWindowIntoDeviceMemoryAndSaysWhereThereIsNone) {
  Play(R"({"devices":[{"values":{"bar1_total":274877906944,"bar1_used":2097152}},
      {"values":{"bar1_total":1000,"bar1_used":2000}},{"values":{"temp_c":40}}]})");
  const auto samples = Sample(*MakeSource(kGpuBar1), 0);
  EXPECT_THAT(Value(samples, "gpu.bar1.total", 0), Optional(274877906944.0));
  EXPECT_THAT(Value(samples, "gpu.bar1.used", 0), Optional(2097152.0));
  EXPECT_EQ(Value(samples, "gpu.bar1.used", 1), std::nullopt) << "more used than there is";
  EXPECT_EQ(Value(samples, "gpu.bar1.total", 2), std::nullopt);
  EXPECT_THAT(States("gpu.bar1.total", 2), ElementsAre(HasSubstr("not_supported")));
  EXPECT_THAT(LossKinds(), ElementsAre("value.out_of_range"));
}

TEST_F(GroupsTest, ReadsMemoryErrorsRowsAndRecoveryAction) {
  Play(R"({"devices":{"count":1,"values":{"ecc_mode":1,"ecc_corrected_volatile":4,
      "ecc_uncorrected_aggregate":2,"ecc_corrected_aggregate":9,"ecc_uncorrected_volatile":0,
      "remapped_corrected":1,"remapped_uncorrected":2,"remapped_pending":1,"remapped_failure":0,
      "recovery_action":1}}})");
  const auto samples = Sample(*MakeSource(kGpuHealth), 0);
  EXPECT_THAT(Value(samples, "gpu.ecc.volatile error=corrected"), Optional(4));
  EXPECT_THAT(Value(samples, "gpu.ecc.volatile error=uncorrected"), Optional(0));
  EXPECT_THAT(Value(samples, "gpu.ecc.aggregate error=uncorrected"), Optional(2));
  EXPECT_THAT(Value(samples, "gpu.remap.rows cause=uncorrected"), Optional(2));
  EXPECT_THAT(Value(samples, "gpu.remap.pending"), Optional(1));
  EXPECT_THAT(Value(samples, "gpu.recovery_action"), Optional(1));
  EXPECT_EQ(Value(samples, "gpu.retired_pages.pending"), std::nullopt) << "not on this generation";
}

TEST_F(GroupsTest, TakesAnUntouchedFieldForAbsentWhenEccIsOff) {
  Play(R"({"devices":{"count":1,"values":{"ecc_mode":0,"ecc_corrected_volatile":4}}})");
  const auto samples = Sample(*MakeSource(kGpuHealth), 0);
  EXPECT_EQ(Value(samples, "gpu.ecc.volatile error=corrected"), std::nullopt);
  EXPECT_THAT(States("gpu.ecc.volatile error=corrected"), ElementsAre(HasSubstr("not_supported")));
}

TEST_F(GroupsTest, AsksAVirtualGpuForItsRowsOnceOnly) {
  Play(R"({"devices":{"count":1,"values":{"remapped_corrected":1,"remapped_uncorrected":0,
      "remapped_pending":0,"remapped_failure":0}},
      "faults":[{"function":"nvmlDeviceGetRemappedRows","return":999,"times":1}]})");
  const auto source = MakeSource(kGpuHealth);
  for (double t_s = 0; t_s < 600; t_s += 10) {
    EXPECT_EQ(Value(Sample(*source, t_s), "gpu.remap.pending"), std::nullopt);
  }
}

TEST_F(GroupsTest, ReadsLimitsByFieldOnNewDriversAndByCallOnOldOnes) {
  const std::string script = R"({"devices":{"count":1,"values":{"power_limit_mw":600000,
      "power_requested_limit_mw":650000,"power_management_limit_mw":650000,
      "power_default_limit_mw":700000,"power_min_limit_mw":200000,"power_max_limit_mw":710000}}})";
  for (const char* driver : {"", "-470"}) {
    Play(script, 0, driver);
    const auto samples = Sample(*MakeSource(kGpuLimits), 0);
    EXPECT_THAT(Value(samples, "gpu.power.limit limit=enforced"), Optional(600)) << driver;
    EXPECT_THAT(Value(samples, "gpu.power.limit limit=requested"), Optional(650)) << driver;
    EXPECT_THAT(Value(samples, "gpu.power.limit limit=default"), Optional(700)) << driver;
    EXPECT_THAT(Value(samples, "gpu.power.limit limit=min"), Optional(200)) << driver;
    EXPECT_THAT(Value(samples, "gpu.power.limit limit=max"), Optional(710)) << driver;
  }
}

TEST_F(GroupsTest, KeepsAnEnergyResetAndSaysIt) {
  Play(R"({"devices":{"count":1,"values":{"energy_mj":[[0,5000000],[1,2000]]}}})");
  const auto source = MakeSource(kGpuEnergy);
  EXPECT_THAT(Value(Sample(*source, 0), "gpu.energy"), Optional(5000));
  PassSecondOne();
  EXPECT_THAT(Value(Sample(*source, 10), "gpu.energy"), Optional(2));
  EXPECT_THAT(LossKinds(), ElementsAre("counter.reset"));
}

TEST_F(GroupsTest, ReadsThrottleTimeByCallWhereTheFieldsAreMissing) {
  Play(R"({"devices":{"count":1,"values":{"violation_power_ns":2500000000,
      "violation_thermal_ns":1000000000}}})");
  const auto samples = Sample(*MakeSource(kGpuThrottleTime), 0);
  EXPECT_THAT(Value(samples, "gpu.throttle.time reason=power_cap"), Optional(2.5));
  EXPECT_THAT(Value(samples, "gpu.throttle.time reason=thermal"), Optional(1));
}

TEST_F(GroupsTest, ReadsTheFastestFanAndAllowsMoreThanFullSpeed) {
  Play(R"({"devices":{"count":1,"values":{"fans":2,"fan_percent@0":40,"fan_percent@1":105,
      "fan_rpm":2100}}})");
  const auto samples = Sample(*MakeSource(kGpuFan), 0);
  EXPECT_THAT(Value(samples, "gpu.fan"), Optional(1.05));
  EXPECT_THAT(Value(samples, "gpu.fan.rpm"), Optional(2100));
}

TEST_F(GroupsTest, LatchesThatAPassiveBoardHasNoFan) {
  Play(R"({"devices":{"count":1,"values":{"temp_c":40}}})");
  const auto source = MakeSource(kGpuFan);
  for (double t_s : {0.0, 10.0, 20.0}) EXPECT_THAT(Sample(*source, t_s).values, IsEmpty());
  EXPECT_EQ(States("gpu.fan").size(), 1U);
}

TEST_F(GroupsTest, ReadsClocksPerformanceStateEnginesAndMargins) {
  Play(R"({"devices":{"count":1,"values":{"sm_mhz":1980,"graphics_mhz":1975,"video_mhz":1500,
      "mem_mhz":3201,"pstate":0,"max_sm_mhz":1980,"encoder_util":0,"decoder_util":30,
      "sampling_period_us":166666,"margin_temperature_c":-2,"tlimit_slowdown_c":-2}}})");
  const auto clocks = Sample(*MakeSource(kGpuClocks), 0);
  EXPECT_THAT(Value(clocks, "gpu.clock domain=graphics"), Optional(1.975e9));
  EXPECT_THAT(Value(clocks, "gpu.clock domain=video"), Optional(1.5e9));
  EXPECT_THAT(Value(clocks, "gpu.pstate"), Optional(0));
  EXPECT_THAT(Value(Sample(*MakeSource(kGpuMaxClocks), 0), "gpu.clock.max domain=sm"),
              Optional(1.98e9));
  EXPECT_THAT(Value(Sample(*MakeSource(kGpuEngines), 0), "gpu.decoder"), Optional(0.3));
  const auto limits = Sample(*MakeSource(kGpuTemperatureLimits), 0);
  EXPECT_THAT(Value(limits, "gpu.temperature.margin"), Optional(-2));
  EXPECT_THAT(Value(limits, "gpu.temperature.margin_limit limit=slowdown"), Optional(-2));
}

TEST_F(GroupsTest, ChoosesTheMemoryCallForEachDeviceAndAgainWithANewHandle) {
  Play(R"({"devices":{"count":2,"values":{"memory_total":1000,"mem_used":300,
      "memory_reserved":50}},
      "faults":[{"function":"nvmlDeviceGetMemoryInfo_v2","device":1,"return":25,"times":1},
                {"function":"nvmlDeviceGetMemoryInfo","device":1,"return":15,"after":1,
                 "times":1}]})");
  const auto source = MakeSource(kGpuMemory);
  auto samples = Sample(*source, 0);
  EXPECT_THAT(Value(samples, "gpu.memory.used", 0), Optional(300));
  EXPECT_THAT(Value(samples, "gpu.memory.used", 1), Optional(350));
  EXPECT_EQ(Attribute("memory_call", 0), "nvmlDeviceGetMemoryInfo_v2");
  EXPECT_EQ(Attribute("memory_call", 1), "nvmlDeviceGetMemoryInfo");
  Sample(*source, 1);  // the device is lost
  samples = Sample(*source, 31);
  EXPECT_THAT(Value(samples, "gpu.memory.used", 1), Optional(300));
  EXPECT_EQ(Attribute("memory_call", 1), "nvmlDeviceGetMemoryInfo_v2");
}

TEST_F(GroupsTest, CallsTheHostsMemoryUnifiedAndNeverTheGpus) {
  Play(R"({"devices":{"count":1,"values":{"temp_c":40}}})");
  const auto source = MakeSource(kGpuMemory);
  for (double t_s : {0.0, 1.0}) {
    const auto samples = Sample(*source, t_s);
    EXPECT_EQ(Value(samples, "gpu.memory.used"), std::nullopt);
    EXPECT_EQ(Value(samples, "gpu.memory.total"), std::nullopt);
    EXPECT_GT(Value(samples, "gpu.memory.unified.total").value_or(0), 1e8);
    EXPECT_GT(Value(samples, "gpu.memory.unified.available").value_or(0), 0);
  }
  EXPECT_EQ(Attribute("memory_kind"), "unified");
}

TEST_F(GroupsTest, SaysThatUtilizationIsStuckWhenTheDriverCallsTheGpuIdle) {
  Play(R"({"devices":{"count":1,"values":{"util_gpu":100,"util_mem":0,
      "clocks_event_reasons":1}}})");
  const auto source = MakeSource(kGpuUtilization);
  for (double t_s = 0; t_s < 4; ++t_s) Sample(*source, t_s);
  EXPECT_THAT(LossKinds(), IsEmpty());
  for (double t_s = 4; t_s < 20; ++t_s) {
    EXPECT_THAT(Value(Sample(*source, t_s), "gpu.utilization"), Optional(1.0)) << "not altered";
  }
  EXPECT_THAT(LossKinds(), ElementsAre("value.implausible"));
}

}  // namespace
}  // namespace epochmeter::collect::nvml
