// SPDX-License-Identifier: Apache-2.0
// The stateless sources: values as the device shows them, and each way they can be absent.
#include "collect/nvml/device_source.h"

#include <gmock/gmock.h>

#include "collect/nvml/replay_fixture.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

class DeviceSourceTest : public ReplayTest {};

TEST_F(DeviceSourceTest, ReadsTheValuesOfARecordingInBaseUnits) {
  SKIP_WITHOUT(SharedRecording("healthy"));
  Play(SharedRecording("healthy"), -100);
  EXPECT_THAT(Value(Sample(*MakeSource(kGpuUtilization), 0), "gpu.utilization"), Optional(0.01));
  const auto memory = Sample(*MakeSource(kGpuMemory), 0);
  EXPECT_THAT(Value(memory, "gpu.memory.total"), Optional(150754820096.0));
  EXPECT_THAT(Value(memory, "gpu.memory.used"), Optional(552402944.0));
  EXPECT_THAT(Value(memory, "gpu.memory.reserved"), Optional(644939776.0));
  const auto power = Sample(*MakeSource(kGpuPower), 0);
  EXPECT_THAT(Value(power, "gpu.power"), Optional(85.34));
  EXPECT_THAT(Value(power, "gpu.power.instant"), Optional(122.465));
  EXPECT_THAT(Value(power, "gpu.power.average"), Optional(85.34));
  const auto temperature = Sample(*MakeSource(kGpuTemperature), 0);
  EXPECT_THAT(Value(temperature, "gpu.temperature sensor=core"), Optional(38));
  EXPECT_THAT(Value(temperature, "gpu.temperature sensor=memory"), Optional(38));
  const auto clocks = Sample(*MakeSource(kGpuClocks), 0);
  EXPECT_THAT(Value(clocks, "gpu.clock domain=sm"), Optional(1.98e9));
  EXPECT_THAT(Value(clocks, "gpu.clock domain=mem"), Optional(3.201e9));
  EXPECT_THAT(Value(Sample(*MakeSource(kGpuEnergy), 0), "gpu.energy"), Optional(6181.504));
  EXPECT_THAT(Value(Sample(*MakeSource(kGpuLimits), 0), "gpu.power.limit limit=enforced"),
              Optional(700));
  EXPECT_THAT(Value(Sample(*MakeSource(kGpuThrottle), 0), "gpu.throttle.reasons"), Optional(0));
  EXPECT_THAT(Value(Sample(*MakeSource(kGpuThrottleTime), 0), "gpu.throttle.time reason=power_cap"),
              Optional(0));
  // What the recording lacks is said so, and nothing else is.
  for (const auto& state : Records<model::SeriesState>()) {
    EXPECT_EQ(state.condition, model::SeriesCondition::kNotSupported) << state.detail;
  }
  EXPECT_THAT(Records<model::Loss>(), IsEmpty());
}

TEST_F(DeviceSourceTest, LatchesAnUnsupportedCallAndTellsItOnce) {
  Play(R"({"devices":{"count":1,"values":{"util_gpu":50,"util_mem":5}},
      "faults":[{"function":"nvmlDeviceGetUtilizationRates","return":3,"times":1}]})");
  const auto source = MakeSource(kGpuUtilization);
  for (double t_s : {0.0, 1.0, 100.0, 10000.0}) {
    EXPECT_EQ(Value(Sample(*source, t_s), "gpu.utilization"), std::nullopt);
  }
  EXPECT_THAT(States("gpu.utilization"),
              ElementsAre("not_supported: nvmlDeviceGetUtilizationRates: Not Supported (3)"));
  EXPECT_THAT(States("gpu.memory.activity").size(), 1U);
}

TEST_F(DeviceSourceTest, BacksOffTransientErrorsAndComesBack) {
  Play(R"({"devices":{"count":1,"values":{"util_gpu":50,"util_mem":5}},
      "faults":[{"function":"nvmlDeviceGetUtilizationRates","return":10,"times":3}]})");
  const auto source = MakeSource(kGpuUtilization);
  std::vector<double> with_value;
  for (double t_s = 0; t_s < 10; t_s += 0.5) {
    if (Value(Sample(*source, t_s), "gpu.utilization")) with_value.push_back(t_s);
  }
  // Tried at 0, 1, 3 and again 4 s later.
  ASSERT_FALSE(with_value.empty());
  EXPECT_EQ(with_value.front(), 7.0);
  EXPECT_THAT(States("gpu.utilization"), ElementsAre(HasSubstr("error: "), "ok: "));
}

TEST_F(DeviceSourceTest, AsksAgainOnceAMinuteWithoutPermission) {
  Play(R"({"devices":{"count":1,"values":{"util_gpu":50,"util_mem":5}},
      "faults":[{"function":"nvmlDeviceGetUtilizationRates","return":4,"times":1}]})");
  const auto source = MakeSource(kGpuUtilization);
  EXPECT_EQ(Value(Sample(*source, 0), "gpu.utilization"), std::nullopt);
  EXPECT_EQ(Value(Sample(*source, 59), "gpu.utilization"), std::nullopt);
  EXPECT_THAT(Value(Sample(*source, 60), "gpu.utilization"), Optional(0.5));
  EXPECT_THAT(States("gpu.utilization"), ElementsAre(HasSubstr("no_permission: "), "ok: "));
}

TEST_F(DeviceSourceTest, DropsAndCountsImpossibleValues) {
  Play(R"({"devices":{"count":1,"values":{"util_gpu":101,"util_mem":100,"power_mw":4294967295,
      "temp_c":151,"memory_total":1000,"mem_used":2000,"mem_free":1.8446744073709552e19,
      "energy_mj":1.8446744073709552e19}}})");
  {
    const auto utilization = MakeSource(kGpuUtilization);
    const auto samples = Sample(*utilization, 0);
    EXPECT_EQ(Value(samples, "gpu.utilization"), std::nullopt);
    EXPECT_THAT(Value(samples, "gpu.memory.activity"), Optional(1.0));
    Sample(*utilization, 1);
    Sample(*utilization, 2);
  }
  auto losses = Records<model::Loss>();
  ASSERT_EQ(losses.size(), 2U) << "told at once, and the rest when the source ends";
  EXPECT_EQ(losses[0].kind, "value.out_of_range");
  EXPECT_EQ(losses[0].count + losses[1].count, 3U);
  EXPECT_THAT(losses[0].detail, HasSubstr("gpu.utilization"));

  EXPECT_THAT(Sample(*MakeSource(kGpuPower), 0).values, IsEmpty());
  EXPECT_THAT(Sample(*MakeSource(kGpuTemperature), 0).values, IsEmpty());
  EXPECT_THAT(Sample(*MakeSource(kGpuEnergy), 0).values, IsEmpty());
  const auto memory = Sample(*MakeSource(kGpuMemory), 0);
  EXPECT_EQ(Value(memory, "gpu.memory.used"), std::nullopt);
  EXPECT_EQ(Value(memory, "gpu.memory.free"), std::nullopt);
  EXPECT_EQ(Records<model::Loss>().size(), 7U);
}

TEST_F(DeviceSourceTest, FallsBackToTheOlderMemoryCallAndSaysSoInTheSource) {
  Play(R"({"devices":{"count":1,"values":{"memory_total":1000,"mem_used":300,
      "memory_reserved":50}},
      "faults":[{"function":"nvmlDeviceGetMemoryInfo_v2","return":13}]})");
  const auto source = MakeSource(kGpuMemory);
  const auto samples = Sample(*source, 0);
  EXPECT_THAT(Value(samples, "gpu.memory.used"), Optional(350));
  EXPECT_EQ(Value(samples, "gpu.memory.reserved"), std::nullopt);
  for (const auto& series : Records<model::SeriesDef>()) {
    EXPECT_EQ(series.metric.source, "nvmlDeviceGetMemoryInfo");
  }
}

TEST_F(DeviceSourceTest, NamesSharedMemoryWhenTheTotalIsZero) {
  Play(R"({"devices":{"count":1,"values":{"memory_total":0,"mem_used":0}}})");
  const auto samples = Sample(*MakeSource(kGpuMemory), 0);
  EXPECT_EQ(Value(samples, "gpu.memory.used"), std::nullopt);
  EXPECT_GT(Value(samples, "gpu.memory.unified.total").value_or(0), 1e8);
  EXPECT_THAT(States("gpu.memory.used"),
              ElementsAre(HasSubstr("not_supported: the driver reports 0 bytes")));
}

TEST_F(DeviceSourceTest, ReadsTheTemperatureThroughTheOlderCallToo) {
  Play(R"({"devices":{"count":1,"values":{"temp_c":61,"memory_temp_c":0}},
      "faults":[{"function":"nvmlDeviceGetTemperatureV","return":13}]})");
  const auto source = MakeSource(kGpuTemperature);
  const auto samples = Sample(*source, 0);
  EXPECT_THAT(Value(samples, "gpu.temperature sensor=core"), Optional(61));
  EXPECT_EQ(Value(samples, "gpu.temperature sensor=memory"), std::nullopt);
  Sample(*source, 1);
  EXPECT_THAT(States("gpu.temperature sensor=memory"),
              ElementsAre(HasSubstr("not_found: the driver shows 0 degrees")));
}

TEST_F(DeviceSourceTest, KeepsTheOtherFieldsOfABatchWhenOneIsNotSupported) {
  Play(R"({"devices":{"count":1,"values":{"power_mw":90000,"power_average_mw":80000}}})");
  const auto source = MakeSource(kGpuPower);
  for (double t_s : {0.0, 1.0}) {
    const auto samples = Sample(*source, t_s);
    EXPECT_THAT(Value(samples, "gpu.power"), Optional(90));
    EXPECT_EQ(Value(samples, "gpu.power.instant"), std::nullopt);
    EXPECT_THAT(Value(samples, "gpu.power.average"), Optional(80));
  }
  EXPECT_THAT(States("gpu.power.instant"),
              ElementsAre("not_supported: NVML field 186 (POWER_INSTANT): Not Supported (3)"));
}

TEST_F(DeviceSourceTest, KeepsUnknownThrottleBits) {
  Play(R"({"devices":{"count":1,"values":{"clocks_event_reasons":2052}}})");
  EXPECT_THAT(Value(Sample(*MakeSource(kGpuThrottle), 0), "gpu.throttle.reasons"), Optional(2052));
}

TEST_F(DeviceSourceTest, GivesSeriesTheirTiersPeriod) {
  Play(R"({"devices":{"count":1,"values":{"energy_mj":1,"util_gpu":1,"util_mem":1}}})");
  Sample(*MakeSource(kGpuEnergy), 0);
  Sample(*MakeSource(kGpuUtilization), 0);
  const auto series = Records<model::SeriesDef>();
  ASSERT_EQ(series.size(), 3U);
  EXPECT_EQ(series[0].period_ns, 10 * base::kNsPerSecond);
  EXPECT_EQ(series[1].period_ns, base::kNsPerSecond);
}

TEST(FieldNumberTest, ConvertsByValueType) {
  NvmlFieldValue field{};
  field.value_type = kNvmlValueSignedInt;
  field.value.i32 = -5;
  EXPECT_THAT(FieldNumber(field), Optional(-5));
  field.value_type = kNvmlValueDouble;
  field.value.dbl = 2.5;
  EXPECT_THAT(FieldNumber(field), Optional(2.5));
  field.value_type = kNvmlValueUlonglong;
  field.value.u64 = 1ULL << 40;
  EXPECT_THAT(FieldNumber(field), Optional(1099511627776.0));
  field.value_type = 77;
  EXPECT_EQ(FieldNumber(field), std::nullopt);
}

}  // namespace
}  // namespace epochmeter::collect::nvml
