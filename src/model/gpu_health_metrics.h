// SPDX-License-Identifier: Apache-2.0
// Metrics of a GPU's health and limits: memory errors, XIDs, heat margins, fans, clocks' bounds.
#pragma once

#include "model/gpu_metrics.h"

namespace epochmeter::model::gpu {

// Two names, as a metric has one label: the lifetime is in the name.
consteval MetricDef EccVolatile(std::string_view label, std::string_view field,
                                std::string_view help, std::string_view source) {
  return Counter("gpu.ecc.volatile", label, field, "gpu_ecc_volatile_errors_total", "{error}", 1,
                 help, source);
}
consteval MetricDef EccAggregate(std::string_view label, std::string_view field,
                                 std::string_view help, std::string_view source) {
  return Counter("gpu.ecc.aggregate", label, field, "gpu_ecc_aggregate_errors_total", "{error}", 1,
                 help, source);
}
inline constexpr MetricDef kEccCorrectedVolatile =
    EccVolatile("error=corrected", "ecc_corrected_volatile_errors",
                "Memory errors corrected since the driver was loaded.", "NVML field 3");
inline constexpr MetricDef kEccUncorrectedVolatile =
    EccVolatile("error=uncorrected", "ecc_uncorrected_volatile_errors",
                "Memory errors not corrected since the driver was loaded.", "NVML field 4");
inline constexpr MetricDef kEccCorrectedAggregate =
    EccAggregate("error=corrected", "ecc_corrected_aggregate_errors",
                 "Memory errors corrected in the board's life.", "NVML field 5");
inline constexpr MetricDef kEccUncorrectedAggregate =
    EccAggregate("error=uncorrected", "ecc_uncorrected_aggregate_errors",
                 "Memory errors not corrected in the board's life.", "NVML field 6");

inline constexpr MetricDef kRemappedCorrected = Counter(
    "gpu.remap.rows", "cause=corrected", "remapped_rows_corrected", "gpu_remapped_rows_total",
    "{row}", 1, "Memory rows replaced after corrected errors.", "nvmlDeviceGetRemappedRows");
inline constexpr MetricDef kRemappedUncorrected = Counter(
    "gpu.remap.rows", "cause=uncorrected", "remapped_rows_uncorrected", "gpu_remapped_rows_total",
    "{row}", 1, "Memory rows replaced after errors that were not corrected.",
    "nvmlDeviceGetRemappedRows");
inline constexpr MetricDef kRemapPending =
    State("gpu.remap.pending", "row_remap_pending", "gpu_row_remap_pending",
          "1 when a memory row is replaced at the next reset.", "nvmlDeviceGetRemappedRows");
inline constexpr MetricDef kRemapFailed = State(
    "gpu.remap.failed", "row_remap_failed", "gpu_row_remap_failed",
    "1 when a memory row could not be replaced: no spare is left.", "nvmlDeviceGetRemappedRows");
inline constexpr MetricDef kRetiredSingle = Counter(
    "gpu.retired_pages", "cause=single_bit", "retired_pages_single_bit", "gpu_retired_pages_total",
    "{page}", 1, "Memory pages out of use after many corrected errors (Volta and older).",
    "NVML field 29");
inline constexpr MetricDef kRetiredDouble = Counter(
    "gpu.retired_pages", "cause=double_bit", "retired_pages_double_bit", "gpu_retired_pages_total",
    "{page}", 1, "Memory pages out of use after an error not corrected (Volta and older).",
    "NVML field 30");
inline constexpr MetricDef kRetiredPending =
    State("gpu.retired_pages.pending", "retired_pages_pending", "gpu_retired_pages_pending",
          "1 when a page goes out of use at the next reboot.", "NVML field 31");
inline constexpr MetricDef kRecoveryAction =
    State("gpu.recovery_action", "recovery_action", "gpu_recovery_action",
          "What the driver asks for: 0 nothing, 1 reset, 2 reboot, 3 drain, 4 drain and reset.",
          "NVML field 230");

inline constexpr MetricDef kXids =
    Counter("gpu.xids", "", "xids", "gpu_xids_total", "{error}", 1,
            "XID errors that the driver reported since the recording began.", "nvmlEventSetWait");

consteval MetricDef TemperatureLimit(std::string_view label, std::string_view field,
                                     std::string_view help, std::string_view source) {
  return Gauge("gpu.temperature.limit", label, field, "gpu_temperature_limit_celsius", "Cel", 1,
               help, source);
}
inline constexpr MetricDef kTemperatureSlowdown = TemperatureLimit(
    "limit=slowdown", "temperature_slowdown_c", "Temperature at which the hardware lowers clocks.",
    "nvmlDeviceGetTemperatureThreshold");
inline constexpr MetricDef kTemperatureShutdown = TemperatureLimit(
    "limit=shutdown", "temperature_shutdown_c", "Temperature at which the GPU is switched off.",
    "nvmlDeviceGetTemperatureThreshold");
inline constexpr MetricDef kTemperatureMargin =
    Gauge("gpu.temperature.margin", "", "temperature_margin_c", "gpu_temperature_margin_celsius",
          "Cel", 1, "Degrees until the hardware lowers clocks; negative above that.",
          "nvmlDeviceGetMarginTemperature");

// Ada and newer say limits as the margin that is left when something happens; may be negative.
consteval MetricDef MarginLimit(std::string_view label, std::string_view field,
                                std::string_view help, std::string_view source) {
  return Gauge("gpu.temperature.margin_limit", label, field, "gpu_temperature_margin_limit_celsius",
               "Cel", 1, help, source);
}
inline constexpr MetricDef kMarginSlowdown =
    MarginLimit("limit=slowdown", "temperature_margin_slowdown_c",
                "Margin at which the hardware lowers clocks.", "NVML field 194");
inline constexpr MetricDef kMarginShutdown =
    MarginLimit("limit=shutdown", "temperature_margin_shutdown_c",
                "Margin at which the GPU is switched off.", "NVML field 193");
inline constexpr MetricDef kMarginMemory =
    MarginLimit("limit=memory", "temperature_margin_memory_c",
                "Margin at which memory clocks are lowered.", "NVML field 195");
inline constexpr MetricDef kMarginGpu =
    MarginLimit("limit=gpu", "temperature_margin_gpu_c",
                "Margin at which the driver lowers the GPU's clocks.", "NVML field 196");

inline constexpr MetricDef kFanSpeed =
    Gauge("gpu.fan", "", "fan_speed_ratio", "gpu_fan_speed_ratio", "1", kPercentStep,
          "Intended speed of the fastest fan as a part of its usual highest; may exceed 1.",
          "nvmlDeviceGetFanSpeed");
inline constexpr MetricDef kFanRpm =
    Gauge("gpu.fan.rpm", "", "fan_rpm", "gpu_fan_rpm", "{revolution}/min", 1,
          "Measured speed of the fastest fan.", "nvmlDeviceGetFanSpeedRPM");
inline constexpr MetricDef kPerformanceState =
    State("gpu.pstate", "performance_state", "gpu_performance_state",
          "Performance state, 0 is the fastest.", "nvmlDeviceGetPerformanceState");

consteval MetricDef Clock(std::string_view label, std::string_view field, std::string_view help) {
  return Gauge("gpu.clock", label, field, "gpu_clock_hertz", "Hz", 1e6, help,
               "nvmlDeviceGetClockInfo");
}
inline constexpr MetricDef kGraphicsClock =
    Clock("domain=graphics", "graphics_clock_hz", "Clock of the graphics engine now.");
inline constexpr MetricDef kVideoClock =
    Clock("domain=video", "video_clock_hz", "Clock of the video engines now.");
consteval MetricDef MaxClock(std::string_view label, std::string_view field,
                             std::string_view help) {
  return Gauge("gpu.clock.max", label, field, "gpu_clock_max_hertz", "Hz", 1e6, help,
               "nvmlDeviceGetMaxClockInfo");
}
inline constexpr MetricDef kMaxSmClock =
    MaxClock("domain=sm", "sm_clock_max_hz", "Highest clock of the multiprocessors.");
inline constexpr MetricDef kMaxMemoryClock =
    MaxClock("domain=mem", "memory_clock_max_hz", "Highest clock of the device memory.");
inline constexpr MetricDef kMaxGraphicsClock =
    MaxClock("domain=graphics", "graphics_clock_max_hz", "Highest clock of the graphics engine.");

}  // namespace epochmeter::model::gpu
