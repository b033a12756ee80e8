// SPDX-License-Identifier: Apache-2.0
// Metrics of a GPU from the driver's sample buffers, of its power limits and of its fixed-function
// engines; shared by live collectors and importers like those of gpu_metrics.h.
#pragma once

#include "model/gpu_metrics.h"

namespace epochmeter::model::gpu {

consteval MetricDef Limit(std::string_view label, std::string_view field, std::string_view help,
                          std::string_view source) {
  return Gauge("gpu.power.limit", label, field, "gpu_power_limit_watts", "W", 0.001, help, source);
}
inline constexpr MetricDef kPowerLimitRequested =
    Limit("limit=requested", "power_limit_requested_w",
          "Power limit that was asked for; above the enforced one something else caps.",
          "NVML field 192");
inline constexpr MetricDef kPowerLimitDefault = Limit(
    "limit=default", "power_limit_default_w", "Power limit after a restart.", "NVML field 189");
inline constexpr MetricDef kPowerLimitMin = Limit(
    "limit=min", "power_limit_min_w", "Lowest power limit that can be set.", "NVML field 187");
inline constexpr MetricDef kPowerLimitMax = Limit(
    "limit=max", "power_limit_max_w", "Highest power limit that can be set.", "NVML field 188");

// Of the driver's buffer of readings (power each 20 ms): figures over those that came since the
// reading before, so that what lies between two ticks is seen.
consteval MetricDef PowerTrace(std::string_view label, std::string_view field,
                               std::string_view help) {
  return Gauge("gpu.power.trace", label, field, "gpu_power_trace_watts", "W", 0.001, help,
               "nvmlDeviceGetSamples(TOTAL_POWER)");
}
inline constexpr MetricDef kPowerTraceMean =
    PowerTrace("stat=mean", "power_trace_mean_w",
               "Mean of the driver's 20 ms power readings since the sample before.");
inline constexpr MetricDef kPowerTraceMin =
    PowerTrace("stat=min", "power_trace_min_w",
               "Lowest of the driver's 20 ms power readings since the sample before.");
inline constexpr MetricDef kPowerTraceMax =
    PowerTrace("stat=max", "power_trace_max_w",
               "Highest of the driver's 20 ms power readings since the sample before.");
inline constexpr MetricDef kPowerTraceP95 =
    PowerTrace("stat=p95", "power_trace_p95_w",
               "95 % of the driver's 20 ms power readings since the sample before are below.");
inline constexpr MetricDef kPowerTraceCovered = Gauge(
    "gpu.power.trace.covered", "", "power_trace_covered_ratio", "gpu_power_trace_covered_ratio",
    "1", 1e-4, "Part of the time since the sample before that the driver's power readings cover.",
    "nvmlDeviceGetSamples(TOTAL_POWER)");

consteval MetricDef UtilizationTrace(std::string_view label, std::string_view field,
                                     std::string_view help) {
  return Gauge("gpu.utilization.trace", label, field, "gpu_utilization_trace_ratio", "1", 1e-4,
               help, "nvmlDeviceGetSamples(GPU_UTILIZATION)");
}
inline constexpr MetricDef kUtilizationTraceMean =
    UtilizationTrace("stat=mean", "utilization_trace_mean_ratio",
                     "Mean of all the driver's utilisation windows since the sample before.");
inline constexpr MetricDef kUtilizationTraceMin =
    UtilizationTrace("stat=min", "utilization_trace_min_ratio",
                     "Lowest of the driver's utilisation windows since the sample before.");
inline constexpr MetricDef kUtilizationTraceMax =
    UtilizationTrace("stat=max", "utilization_trace_max_ratio",
                     "Highest of the driver's utilisation windows since the sample before.");
inline constexpr MetricDef kUtilizationTraceCovered =
    Gauge("gpu.utilization.trace.covered", "", "utilization_trace_covered_ratio",
          "gpu_utilization_trace_covered_ratio", "1", 1e-4,
          "Part of the time since the sample before that the driver's windows cover.",
          "nvmlDeviceGetSamples(GPU_UTILIZATION)");
inline constexpr MetricDef kMemoryActivityTraceMean =
    Gauge("gpu.memory.activity.trace", "stat=mean", "memory_activity_trace_mean_ratio",
          "gpu_memory_activity_trace_ratio", "1", 1e-4,
          "Mean of all the driver's windows of memory traffic since the sample before.",
          "nvmlDeviceGetSamples(MEMORY_UTILIZATION)");
inline constexpr MetricDef kMemoryActivityTraceMax =
    Gauge("gpu.memory.activity.trace", "stat=max", "memory_activity_trace_max_ratio",
          "gpu_memory_activity_trace_ratio", "1", 1e-4,
          "Highest of the driver's windows of memory traffic since the sample before.",
          "nvmlDeviceGetSamples(MEMORY_UTILIZATION)");

consteval MetricDef Engine(std::string_view name, std::string_view field,
                           std::string_view prometheus, std::string_view help,
                           std::string_view source) {
  return Gauge(name, "", field, prometheus, "1", kPercentStep, help, source);
}
inline constexpr MetricDef kEncoder =
    Engine("gpu.encoder", "encoder_utilization_ratio", "gpu_encoder_utilization_ratio",
           "Part of the driver's window in which the video encoder worked.",
           "nvmlDeviceGetEncoderUtilization");
inline constexpr MetricDef kDecoder =
    Engine("gpu.decoder", "decoder_utilization_ratio", "gpu_decoder_utilization_ratio",
           "Part of the driver's window in which the video decoder worked.",
           "nvmlDeviceGetDecoderUtilization");
inline constexpr MetricDef kJpeg = Engine(
    "gpu.jpeg", "jpeg_utilization_ratio", "gpu_jpeg_utilization_ratio",
    "Part of the driver's window in which the JPEG engine worked.", "nvmlDeviceGetJpgUtilization");
inline constexpr MetricDef kOpticalFlow = Engine(
    "gpu.optical_flow", "optical_flow_utilization_ratio", "gpu_optical_flow_utilization_ratio",
    "Part of the driver's window in which the optical flow engine worked.",
    "nvmlDeviceGetOfaUtilization");

// Of one process on one GPU, over the time since the driver's last window of it.
consteval MetricDef OfProcess(std::string_view name, std::string_view field,
                              std::string_view prometheus, std::string_view help) {
  return Metric({name, "", field, prometheus, "1", MetricKind::kGauge, Scope::kProcess,
                 kPercentStep, help, "nvmlDeviceGetProcessUtilization"});
}
inline constexpr MetricDef kOfProcessSm =
    OfProcess("gpu.process.utilization", "gpu_utilization_ratio", "process_gpu_utilization_ratio",
              "Part of the driver's window in which kernels of the process ran.");
inline constexpr MetricDef kOfProcessMemoryActivity = OfProcess(
    "gpu.process.memory_activity", "gpu_memory_activity_ratio", "process_gpu_memory_activity_ratio",
    "Part of the driver's window in which the process used device memory.");

}  // namespace epochmeter::model::gpu
