// SPDX-License-Identifier: Apache-2.0
// Values with rules of their own: links, ECC, fans, power scopes, retired pages, old calls.
#include <string>

#include "client.h"

namespace nvml_replay {
namespace {

TEST(Values, NvlinkSumsNeedTheScopeOfAllLinks) {
  Client nvml(R"({"devices":[
      {"values":{"nvlink_links":18,"nvlink_tx_kib":18000,"nvlink_rx_kib":9000,
                 "nvlink_tx_kib@3":77,"nvlink_version":4,"nvlink_error_replay@2":5,
                 "nvlink_state":1,"nvlink_state@1":0}},
      {"values":{"nvlink_links":18,"nvlink_tx_kib":5,"nvlink_version":5,
                 "nvlink5_tx_bytes":123,"nvlink_error_replay":4}},
      {}]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice hopper = nvml.Device(0);
  EXPECT_EQ(nvml.Field(hopper, 138, UINT32_MAX).value.u64, 18000U);
  EXPECT_EQ(nvml.Field(hopper, 139, UINT32_MAX).value.u64, 9000U);
  EXPECT_EQ(nvml.Field(hopper, 138, 0).value.u64, 1000U) << "a scope left at 0 is link 0";
  EXPECT_EQ(nvml.Field(hopper, 138, 3).value.u64, 77U);
  EXPECT_EQ(nvml.Field(hopper, 138, 18).nvml_return, kNvmlNotSupported);
  uint32_t active = 9;
  EXPECT_EQ(nvml("nvmlDeviceGetNvLinkState", hopper, 0U, &active), kNvmlSuccess);
  EXPECT_EQ(active, 1U);
  EXPECT_EQ(nvml("nvmlDeviceGetNvLinkState", hopper, 1U, &active), kNvmlSuccess);
  EXPECT_EQ(active, 0U);
  EXPECT_EQ(nvml("nvmlDeviceGetNvLinkState", hopper, 18U, &active), kNvmlInvalidArgument);
  uint64_t errors = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetNvLinkErrorCounter", hopper, 2U, 0U, &errors), kNvmlSuccess);
  EXPECT_EQ(errors, 5U);

  const NvmlDevice blackwell = nvml.Device(1);
  EXPECT_EQ(nvml.Field(blackwell, 138, UINT32_MAX).value.u64, 5U);
  EXPECT_EQ(nvml.Field(blackwell, 138, 0).nvml_return, kNvmlNotSupported);
  EXPECT_EQ(nvml.Field(blackwell, 202, UINT32_MAX).value.u64, 123U);
  EXPECT_EQ(nvml.Field(blackwell, 161, UINT32_MAX).nvml_return, kNvmlNotSupported);
  EXPECT_EQ(nvml("nvmlDeviceGetNvLinkErrorCounter", blackwell, 0U, 0U, &errors), kNvmlNotSupported);
  EXPECT_EQ(nvml.Field(nvml.Device(2), 138, UINT32_MAX).nvml_return, kNvmlNotSupported);
}

TEST(Values, EccOffSucceedsWithoutTouchingTheSlot) {
  Client nvml(R"({"devices":[
      {"values":{"ecc_mode":1,"ecc_corrected_volatile":3,"ecc_uncorrected_aggregate":4}},
      {"values":{"ecc_mode":0,"ecc_corrected_volatile":3}}]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlFieldValue on = nvml.Field(nvml.Device(0), kNvmlFieldEccCorrectedVolatile);
  EXPECT_EQ(on.nvml_return, kNvmlSuccess);
  EXPECT_EQ(on.value.u64, 3U);
  EXPECT_NE(on.timestamp_us, 0);
  const NvmlFieldValue off = nvml.Field(nvml.Device(1), kNvmlFieldEccCorrectedVolatile);
  EXPECT_EQ(off.nvml_return, kNvmlSuccess);
  EXPECT_EQ(off.value.u64, 0xDEADU);
  EXPECT_EQ(off.timestamp_us, 0);
  uint64_t count = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetTotalEccErrors", nvml.Device(0), uint32_t{kNvmlErrorUncorrected},
                 uint32_t{kNvmlEccAggregate}, &count),
            kNvmlSuccess);
  EXPECT_EQ(count, 4U);
  EXPECT_EQ(nvml("nvmlDeviceGetTotalEccErrors", nvml.Device(1), uint32_t{kNvmlErrorCorrected},
                 uint32_t{kNvmlEccVolatile}, &count),
            kNvmlNotSupported);
}

TEST(Values, FansAnswerOneByOneAndAbovePercentHundred) {
  Client nvml(R"({"devices":[{"values":{"fans":2,"fan_percent":105,"fan_percent@1":30,
      "fan_rpm":2400}},{}]})",
              0, "-615");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = nvml.Device(0);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetNumFans", device), 2U);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetFanSpeed", device), 105U);
  uint32_t percent = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetFanSpeed_v2", device, 1U, &percent), kNvmlSuccess);
  EXPECT_EQ(percent, 30U);
  EXPECT_EQ(nvml("nvmlDeviceGetFanSpeed_v2", device, 2U, &percent), kNvmlInvalidArgument);
  NvmlFanSpeedInfoV1 rpm{static_cast<uint32_t>(kNvmlFanSpeedInfoV1Version), 1, 0};
  EXPECT_EQ(nvml("nvmlDeviceGetFanSpeedRPM", device, &rpm), kNvmlSuccess);
  EXPECT_EQ(rpm.rpm, 2400U);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetNumFans", nvml.Device(1)), 0U);
  EXPECT_EQ(nvml("nvmlDeviceGetFanSpeed", nvml.Device(1), &percent), kNvmlNotSupported);
}

TEST(Values, PowerScopesAndTemperatureLimitsHaveTheirSigns) {
  Client nvml(R"({"devices":{"values":{"power_instant_mw":500,"power_instant_mw@1":900,
      "tlimit_slowdown_c":-2,"margin_temperature_c":-1,"temp_slowdown_c":89}}})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = nvml.Device(0);
  EXPECT_EQ(nvml.Field(device, 186, 0).value.u32, 500U);
  EXPECT_EQ(nvml.Field(device, 186, 1).value.u32, 900U);
  EXPECT_EQ(nvml.Field(device, 186, 2).nvml_return, kNvmlNotSupported);
  const NvmlFieldValue limit = nvml.Field(device, kNvmlFieldSlowdownTlimit);
  EXPECT_EQ(limit.value_type, uint32_t{kNvmlValueSignedInt});
  EXPECT_EQ(limit.value.i32, -2);
  NvmlMarginTemperatureV1 margin{static_cast<uint32_t>(kNvmlMarginTemperatureV1Version), 0};
  EXPECT_EQ(nvml("nvmlDeviceGetMarginTemperature", device, &margin), kNvmlSuccess);
  EXPECT_EQ(margin.margin_c, -1);
  uint32_t celsius = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetTemperatureThreshold", device, 1U, &celsius), kNvmlSuccess);
  EXPECT_EQ(celsius, 89U);
  EXPECT_EQ(nvml("nvmlDeviceGetTemperatureThreshold", device, 9U, &celsius), kNvmlInvalidArgument);
}

TEST(Values, RetiredPagesViolationsAndMemoryOfOlderBoards) {
  Client nvml(R"({"devices":{"name":"Tesla V100-SXM2-32GB","values":{"retired_pages_sbe":2,
      "retired_pages_dbe":0,"retired_pages_pending":1,"violation_thermal_ns":5000,
      "bar1_total":100,"bar1_used":40,"encoder_util":12,"sampling_period_us":99}}})",
              0, "-470");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = nvml.Device(0);
  uint32_t pages = 0;
  uint64_t* none = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetRetiredPages", device, 0U, &pages, none), kNvmlInsufficientSize);
  EXPECT_EQ(pages, 2U);
  EXPECT_EQ(nvml("nvmlDeviceGetRetiredPages", device, 1U, &pages, none), kNvmlSuccess);
  EXPECT_EQ(pages, 0U);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetRetiredPagesPendingStatus", device), 1U);
  NvmlViolationTime violation{};
  EXPECT_EQ(nvml("nvmlDeviceGetViolationStatus", device, uint32_t{kNvmlPolicyThermal}, &violation),
            kNvmlSuccess);
  EXPECT_EQ(violation.violation_ns, 5000U);
  EXPECT_EQ(nvml("nvmlDeviceGetViolationStatus", device, uint32_t{kNvmlPolicyPower}, &violation),
            kNvmlNotSupported);
  NvmlBar1Memory bar1{};
  EXPECT_EQ(nvml("nvmlDeviceGetBAR1MemoryInfo", device, &bar1), kNvmlSuccess);
  EXPECT_EQ(bar1.free, 60U);
  uint32_t percent = 0;
  uint32_t period_us = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetEncoderUtilization", device, &percent, &period_us), kNvmlSuccess);
  EXPECT_EQ(period_us, 99U);
}

TEST(Values, SharedMemoryChipsShowNoMemoryOrATotalOfZero) {
  Client nvml(R"({"devices":[{"name":"NVIDIA GB10","values":{"memory_total":0,"mem_used":0}},
      {"name":"NVIDIA GB10","values":{"addressing_mode":2,"numa_node":1}}]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlMemoryV2 memory{kNvmlMemoryV2Version, 1, 1, 1, 1};
  EXPECT_EQ(nvml("nvmlDeviceGetMemoryInfo_v2", nvml.Device(0), &memory), kNvmlSuccess);
  EXPECT_EQ(memory.total + memory.used + memory.free, 0U);
  EXPECT_EQ(nvml("nvmlDeviceGetMemoryInfo_v2", nvml.Device(1), &memory), kNvmlNotSupported);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetNumaNodeId", nvml.Device(1)), 1U);
  NvmlAddressingModeV1 mode{static_cast<uint32_t>(kNvmlAddressingModeV1Version), 0};
  EXPECT_EQ(nvml("nvmlDeviceGetAddressingMode", nvml.Device(1), &mode), kNvmlSuccess);
  EXPECT_EQ(mode.mode, uint32_t{kNvmlAddressingAts});
  EXPECT_EQ(nvml.U32("nvmlDeviceGetArchitecture", nvml.Device(0)), uint32_t{kNvmlArchBlackwell});
}

TEST(Values, SampleBuffersCarryTheClockOfTheScript) {
  Client nvml(R"({"sample_clock":"boottime","sample_clock_offset_us":5000000,
      "devices":{"values":{"power_instant_mw":[[0,100],[2,200]],"util_gpu":7}}})",
              3);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlSample points[119] = {};
  uint32_t type = 0;
  uint32_t count = 119;
  ASSERT_EQ(
      nvml("nvmlDeviceGetSamples", nvml.Device(0), 0U, uint64_t{0}, &type, &count, &points[0]),
      kNvmlSuccess);
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double newest_s = static_cast<double>(points[118].timestamp_us) / 1e6;
  EXPECT_NEAR(newest_s,
              static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) + 5, 0.2);
  EXPECT_EQ(points[0].value.u32, 100U);
  EXPECT_EQ(points[118].value.u32, 200U);
  EXPECT_EQ(
      nvml("nvmlDeviceGetSamples", nvml.Device(0), 5U, uint64_t{0}, &type, &count, &points[0]),
      kNvmlNotFound)
      << "clock buffers, as on an H200";
}

}  // namespace
}  // namespace nvml_replay
