// SPDX-License-Identifier: Apache-2.0
// Metrics of a GPU from performance monitoring (GPM), links and throttle-time counters; shared by
// live collectors and importers like those of gpu_metrics.h.
#pragma once

#include "model/gpu_metrics.h"

namespace epochmeter::model::gpu {

consteval MetricDef ThrottleTime(std::string_view label, std::string_view field,
                                 std::string_view help, std::string_view source) {
  return Counter("gpu.throttle.time", label, field, "gpu_throttle_seconds_total", "s", 1e-6, help,
                 source);
}
inline constexpr MetricDef kThrottlePower =
    ThrottleTime("reason=power_cap", "throttle_power_cap_s",
                 "Time with clocks lowered by the power cap.", "NVML field 74");
inline constexpr MetricDef kThrottleThermal = ThrottleTime(
    "reason=thermal", "throttle_thermal_s", "Time with clocks lowered by heat.", "NVML field 75");
inline constexpr MetricDef kThrottleBoard =
    ThrottleTime("reason=board_limit", "throttle_board_limit_s",
                 "Time with clocks lowered by the board's own limit.", "NVML field 77");
inline constexpr MetricDef kThrottleLowUtilization = ThrottleTime(
    "reason=low_utilization", "throttle_low_utilization_s",
    "Time with clocks below the highest because there was little to do.", "NVML field 78");
inline constexpr MetricDef kThrottleReliability =
    ThrottleTime("reason=reliability", "throttle_reliability_s",
                 "Time with clocks lowered by the reliability (voltage) limit.", "NVML field 79");

inline constexpr MetricDef kThrottleSyncBoost =
    ThrottleTime("reason=sync_boost", "throttle_sync_boost_s",
                 "Time with clocks lowered to those of other GPUs in a group.", "NVML field 76");
inline constexpr MetricDef kThrottleBelowApp =
    ThrottleTime("reason=below_application_clocks", "throttle_below_application_clocks_s",
                 "Time below the application clocks, for any reason.", "NVML field 80");
inline constexpr MetricDef kThrottleBelowBase =
    ThrottleTime("reason=below_base_clocks", "throttle_below_base_clocks_s",
                 "Time below the base clocks, for any reason.", "NVML field 81");

inline constexpr MetricDef kPcieTransmit =
    Counter("gpu.pcie.tx_total", "", "pcie_transmit_bytes", "gpu_pcie_transmit_bytes_total", "By",
            1, "Bytes that the GPU sent over PCIe; the driver counts in 32 bits, wraps are undone.",
            "NVML field 197");
inline constexpr MetricDef kPcieReceive = Counter(
    "gpu.pcie.rx_total", "", "pcie_receive_bytes", "gpu_pcie_receive_bytes_total", "By", 1,
    "Bytes that the GPU received over PCIe; the driver counts in 32 bits, wraps are undone.",
    "NVML field 198");
inline constexpr MetricDef kPcieReplays =
    Counter("gpu.pcie.replays", "", "pcie_replays", "gpu_pcie_replays_total", "{replay}", 1,
            "PCIe packets sent again after an error.", "NVML field 94");
inline constexpr MetricDef kNvlinkTransmit =
    Counter("gpu.nvlink.tx", "", "nvlink_transmit_bytes", "gpu_nvlink_transmit_bytes_total", "By",
            1024, "Payload that the GPU sent over all its NVLinks.", "NVML field 138");
inline constexpr MetricDef kNvlinkReceive =
    Counter("gpu.nvlink.rx", "", "nvlink_receive_bytes", "gpu_nvlink_receive_bytes_total", "By",
            1024, "Payload that the GPU received over all its NVLinks.", "NVML field 139");

// GPM: means over the window between two samples of the device's counters, at least 0.1 s long.
consteval MetricDef Active(std::string_view name, std::string_view label, std::string_view field,
                           std::string_view prometheus, std::string_view help,
                           std::string_view source) {
  return Gauge(name, label, field, prometheus, "1", 1e-5, help, source);
}
inline constexpr MetricDef kEngineActive =
    Active("gpu.engine.active", "", "engine_active_ratio", "gpu_graphics_engine_active_ratio",
           "Part of the window in which the graphics and compute engine had work.", "NVML GPM 1");
inline constexpr MetricDef kSmActive =
    Active("gpu.sm.active", "", "sm_active_ratio", "gpu_sm_active_ratio",
           "Part of the window in which a multiprocessor had a warp, mean over all of them.",
           "NVML GPM 2");
inline constexpr MetricDef kSmOccupancy =
    Active("gpu.sm.occupancy", "", "sm_occupancy_ratio", "gpu_sm_occupancy_ratio",
           "Resident warps as a part of the most that fit, mean over window and multiprocessors.",
           "NVML GPM 3");
inline constexpr MetricDef kTensorActive = Active(
    "gpu.tensor.active", "", "tensor_active_ratio", "gpu_tensor_active_ratio",
    "Part of the window in which the tensor pipes worked, any type of number.", "NVML GPM 5");
inline constexpr MetricDef kTensorHalfActive = Active(
    "gpu.tensor.hmma.active", "", "tensor_hmma_active_ratio", "gpu_tensor_hmma_active_ratio",
    "Part of the window in which the tensor pipes worked on half-precision numbers.", "NVML GPM 7");
inline constexpr MetricDef kDramActive =
    Active("gpu.dram.active", "", "dram_active_ratio", "gpu_dram_active_ratio",
           "Device memory traffic as a part of the highest bandwidth.", "NVML GPM 10");
inline constexpr MetricDef kFp64Active =
    Active("gpu.fp.active", "precision=fp64", "fp64_active_ratio", "gpu_fp_active_ratio",
           "Part of the window in which the 64-bit pipes worked.", "NVML GPM 11");
inline constexpr MetricDef kFp32Active =
    Active("gpu.fp.active", "precision=fp32", "fp32_active_ratio", "gpu_fp_active_ratio",
           "Part of the window in which the 32-bit pipes worked.", "NVML GPM 12");
inline constexpr MetricDef kFp16Active =
    Active("gpu.fp.active", "precision=fp16", "fp16_active_ratio", "gpu_fp_active_ratio",
           "Part of the window in which the 16-bit pipes (not tensor) worked.", "NVML GPM 13");
inline constexpr MetricDef kIntegerActive =
    Active("gpu.integer.active", "", "integer_active_ratio", "gpu_integer_active_ratio",
           "Part of the window in which the integer pipes worked.", "NVML GPM 4");

consteval MetricDef Rate(std::string_view name, std::string_view field, std::string_view prometheus,
                         std::string_view help, std::string_view source) {
  return Gauge(name, "", field, prometheus, "By/s", 1, help, source);
}
inline constexpr MetricDef kPcieTransmitRate =
    Rate("gpu.pcie.tx", "pcie_transmit_bytes_per_s", "gpu_pcie_transmit_bytes_per_second",
         "Bytes a second that the GPU sent over PCIe.", "NVML GPM 20");
inline constexpr MetricDef kPcieReceiveRate =
    Rate("gpu.pcie.rx", "pcie_receive_bytes_per_s", "gpu_pcie_receive_bytes_per_second",
         "Bytes a second that the GPU received over PCIe.", "NVML GPM 21");
inline constexpr MetricDef kNvlinkTransmitRate = Rate(
    "gpu.nvlink.tx_rate", "nvlink_transmit_bytes_per_s", "gpu_nvlink_transmit_bytes_per_second",
    "Bytes a second that the GPU sent over NVLink.", "NVML GPM 61");
inline constexpr MetricDef kNvlinkReceiveRate =
    Rate("gpu.nvlink.rx_rate", "nvlink_receive_bytes_per_s", "gpu_nvlink_receive_bytes_per_second",
         "Bytes a second that the GPU received over NVLink.", "NVML GPM 60");

}  // namespace epochmeter::model::gpu
