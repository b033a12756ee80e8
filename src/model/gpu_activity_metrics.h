// SPDX-License-Identifier: Apache-2.0
// Metrics of a GPU from performance monitoring (GPM), links and throttle-time counters; shared by
// live collectors and importers like those of gpu_metrics.h.
#pragma once

#include "model/gpu_metrics.h"

namespace epochmeter::model::gpu {

consteval MetricDef ThrottleTime(std::string_view label, std::string_view field,
                                 std::string_view help, std::string_view source) {
  return Counter("gpu.throttle", label, field, "gpu_throttle_seconds_total", "s", 0.001, help,
                 source);
}
inline constexpr MetricDef kThrottlePower =
    ThrottleTime("reason=power", "throttle_power_s", "Time with clocks lowered by the power cap.",
                 "NVML_FI_DEV_PERF_POLICY_POWER");
inline constexpr MetricDef kThrottleThermal =
    ThrottleTime("reason=thermal", "throttle_thermal_s", "Time with clocks lowered by heat.",
                 "NVML_FI_DEV_PERF_POLICY_THERMAL");
inline constexpr MetricDef kThrottleSyncBoost =
    ThrottleTime("reason=sync_boost", "throttle_sync_boost_s",
                 "Time with clocks lowered to keep a group of GPUs in step.",
                 "NVML_FI_DEV_PERF_POLICY_SYNC_BOOST");
inline constexpr MetricDef kThrottleBoard = ThrottleTime(
    "reason=board_limit", "throttle_board_limit_s",
    "Time with clocks lowered by the board's own limit.", "NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT");
inline constexpr MetricDef kThrottleLowUtilization =
    ThrottleTime("reason=low_utilization", "throttle_low_utilization_s",
                 "Time with clocks below the highest because there was little to do.",
                 "NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION");
inline constexpr MetricDef kThrottleReliability =
    ThrottleTime("reason=reliability", "throttle_reliability_s",
                 "Time with clocks lowered by the reliability (voltage) limit.",
                 "NVML_FI_DEV_PERF_POLICY_RELIABILITY");

inline constexpr MetricDef kPcieTransmit =
    Counter("gpu.pcie.transmit", "", "pcie_transmit_bytes", "gpu_pcie_transmit_bytes_total", "By",
            1, "Bytes that the GPU sent over PCIe.", "NVML_FI_DEV_PCIE_COUNT_TX_BYTES");
inline constexpr MetricDef kPcieReceive =
    Counter("gpu.pcie.receive", "", "pcie_receive_bytes", "gpu_pcie_receive_bytes_total", "By", 1,
            "Bytes that the GPU received over PCIe.", "NVML_FI_DEV_PCIE_COUNT_RX_BYTES");
inline constexpr MetricDef kPcieReplays =
    Counter("gpu.pcie.replays", "", "pcie_replays", "gpu_pcie_replays_total", "{replay}", 1,
            "PCIe packets sent again after an error.", "NVML_FI_DEV_PCIE_REPLAY_COUNTER");
inline constexpr MetricDef kNvlinkTransmit =
    Counter("gpu.nvlink.transmit", "", "nvlink_transmit_bytes", "gpu_nvlink_transmit_bytes_total",
            "By", 1024, "Payload that the GPU sent over all its NVLinks.",
            "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX");
inline constexpr MetricDef kNvlinkReceive = Counter(
    "gpu.nvlink.receive", "", "nvlink_receive_bytes", "gpu_nvlink_receive_bytes_total", "By", 1024,
    "Payload that the GPU received over all its NVLinks.", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX");

// GPM: means over the window between two samples of the device's counters, at least 0.1 s long.
consteval MetricDef Active(std::string_view name, std::string_view label, std::string_view field,
                           std::string_view prometheus, std::string_view help,
                           std::string_view source) {
  return Gauge(name, label, field, prometheus, "1", kRatioStep, help, source);
}
inline constexpr MetricDef kGraphicsActive =
    Active("gpu.engine.active", "", "graphics_active_ratio", "gpu_graphics_engine_active_ratio",
           "Part of the window in which the graphics and compute engine had work.",
           "NVML_GPM_METRIC_GRAPHICS_UTIL");
inline constexpr MetricDef kSmActive =
    Active("gpu.sm.active", "", "sm_active_ratio", "gpu_sm_active_ratio",
           "Part of the window in which a multiprocessor had a warp, mean over all of them.",
           "NVML_GPM_METRIC_SM_UTIL");
inline constexpr MetricDef kSmOccupancy =
    Active("gpu.sm.occupancy", "", "sm_occupancy_ratio", "gpu_sm_occupancy_ratio",
           "Resident warps as a part of the most that fit, mean over window and multiprocessors.",
           "NVML_GPM_METRIC_SM_OCCUPANCY");
inline constexpr MetricDef kTensorActive =
    Active("gpu.tensor.active", "", "tensor_active_ratio", "gpu_tensor_active_ratio",
           "Part of the window in which the tensor pipes worked, any type of number.",
           "NVML_GPM_METRIC_ANY_TENSOR_UTIL");
inline constexpr MetricDef kTensorHalfActive =
    Active("gpu.tensor.hmma.active", "", "tensor_hmma_active_ratio", "gpu_tensor_hmma_active_ratio",
           "Part of the window in which the tensor pipes worked on half-precision numbers.",
           "NVML_GPM_METRIC_HMMA_TENSOR_UTIL");
inline constexpr MetricDef kDramActive = Active(
    "gpu.dram.active", "", "dram_active_ratio", "gpu_dram_active_ratio",
    "Device memory traffic as a part of the highest bandwidth.", "NVML_GPM_METRIC_DRAM_BW_UTIL");
inline constexpr MetricDef kFp64Active =
    Active("gpu.fp.active", "precision=64", "fp64_active_ratio", "gpu_fp_active_ratio",
           "Part of the window in which the 64-bit pipes worked.", "NVML_GPM_METRIC_FP64_UTIL");
inline constexpr MetricDef kFp32Active =
    Active("gpu.fp.active", "precision=32", "fp32_active_ratio", "gpu_fp_active_ratio",
           "Part of the window in which the 32-bit pipes worked.", "NVML_GPM_METRIC_FP32_UTIL");
inline constexpr MetricDef kFp16Active =
    Active("gpu.fp.active", "precision=16", "fp16_active_ratio", "gpu_fp_active_ratio",
           "Part of the window in which the 16-bit pipes (not tensor) worked.",
           "NVML_GPM_METRIC_FP16_UTIL");
inline constexpr MetricDef kIntegerActive =
    Active("gpu.integer.active", "", "integer_active_ratio", "gpu_integer_active_ratio",
           "Part of the window in which the integer pipes worked.", "NVML_GPM_METRIC_INTEGER_UTIL");

consteval MetricDef Rate(std::string_view name, std::string_view field, std::string_view prometheus,
                         std::string_view help, std::string_view source) {
  return Gauge(name, "", field, prometheus, "By/s", 1024, help, source);
}
inline constexpr MetricDef kPcieTransmitRate = Rate(
    "gpu.pcie.transmit.rate", "pcie_transmit_bytes_per_s", "gpu_pcie_transmit_bytes_per_second",
    "Bytes a second that the GPU sent over PCIe.", "NVML_GPM_METRIC_PCIE_TX_PER_SEC");
inline constexpr MetricDef kPcieReceiveRate =
    Rate("gpu.pcie.receive.rate", "pcie_receive_bytes_per_s", "gpu_pcie_receive_bytes_per_second",
         "Bytes a second that the GPU received over PCIe.", "NVML_GPM_METRIC_PCIE_RX_PER_SEC");
inline constexpr MetricDef kNvlinkTransmitRate =
    Rate("gpu.nvlink.transmit.rate", "nvlink_transmit_bytes_per_s",
         "gpu_nvlink_transmit_bytes_per_second", "Bytes a second that the GPU sent over NVLink.",
         "NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC");
inline constexpr MetricDef kNvlinkReceiveRate = Rate(
    "gpu.nvlink.receive.rate", "nvlink_receive_bytes_per_s", "gpu_nvlink_receive_bytes_per_second",
    "Bytes a second that the GPU received over NVLink.", "NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC");

}  // namespace epochmeter::model::gpu
