// SPDX-License-Identifier: Apache-2.0
// Metrics of a GPU that both a live collector and an importer give: one definition each, so that a
// recorded and an imported run have the same series. Activity, link and throttle-time metrics are
// in gpu_activity_metrics.h. The label gpu=, uuid= comes from the entity.
#pragma once

#include "model/metric.h"

namespace epochmeter::model::gpu {

consteval MetricDef Gauge(std::string_view name, std::string_view label, std::string_view field,
                          std::string_view prometheus, std::string_view unit, double resolution,
                          std::string_view help, std::string_view source) {
  return Metric({name, label, field, prometheus, unit, MetricKind::kGauge, Scope::kGpu, resolution,
                 help, source});
}
consteval MetricDef Counter(std::string_view name, std::string_view label, std::string_view field,
                            std::string_view prometheus, std::string_view unit, double resolution,
                            std::string_view help, std::string_view source) {
  return Metric({name, label, field, prometheus, unit, MetricKind::kCounter, Scope::kGpu,
                 resolution, help, source});
}
consteval MetricDef State(std::string_view name, std::string_view field,
                          std::string_view prometheus, std::string_view help,
                          std::string_view source) {
  return Metric(
      {name, "", field, prometheus, "1", MetricKind::kState, Scope::kGpu, 1, help, source});
}

inline constexpr double kPercentStep = 0.01;  // the driver gives whole percents

inline constexpr MetricDef kMemoryUsed =
    Gauge("gpu.memory.used", "", "memory_used_bytes", "gpu_memory_used_bytes", "By", 1,
          "Device memory in use by all processes; what the driver reserves is not in it.",
          "nvmlDeviceGetMemoryInfo_v2");
inline constexpr MetricDef kMemoryFree =
    Gauge("gpu.memory.free", "", "memory_free_bytes", "gpu_memory_free_bytes", "By", 1,
          "Device memory that no process has taken.", "nvmlDeviceGetMemoryInfo_v2");
inline constexpr MetricDef kMemoryTotal =
    Gauge("gpu.memory.total", "", "memory_total_bytes", "gpu_memory_capacity_bytes", "By", 1,
          "Device memory installed: used, free and reserved.", "nvmlDeviceGetMemoryInfo_v2");
inline constexpr MetricDef kMemoryReserved =
    Gauge("gpu.memory.reserved", "", "memory_reserved_bytes", "gpu_memory_reserved_bytes", "By", 1,
          "Device memory that the driver and firmware keep.", "nvmlDeviceGetMemoryInfo_v2");
inline constexpr MetricDef kBar1Total =
    Gauge("gpu.bar1.total", "", "bar1_total_bytes", "gpu_bar1_capacity_bytes", "By", 1,
          "Window through which CPU and other devices reach device memory.",
          "nvmlDeviceGetBAR1MemoryInfo");
inline constexpr MetricDef kBar1Used = Gauge(
    "gpu.bar1.used", "", "bar1_used_bytes", "gpu_bar1_used_bytes", "By", 1,
    "Part of the BAR1 window that is mapped; no memory of its own.", "nvmlDeviceGetBAR1MemoryInfo");
inline constexpr MetricDef kUnifiedTotal =
    Gauge("gpu.memory.unified.total", "", "unified_memory_total_bytes",
          "gpu_unified_memory_capacity_bytes", "By", 1,
          "Memory that a GPU without its own shares with the host: the host's total.",
          "/proc/meminfo MemTotal");
inline constexpr MetricDef kUnifiedAvailable =
    Gauge("gpu.memory.unified.available", "", "unified_memory_available_bytes",
          "gpu_unified_memory_available_bytes", "By", 1,
          "Memory that host and GPU together can still take.", "/proc/meminfo MemAvailable");
inline constexpr MetricDef kProcessMemory =
    Gauge("gpu.memory.processes", "", "process_memory_bytes", "gpu_memory_processes_bytes", "By", 1,
          "Sum over the compute processes that the driver lists on this GPU, of any user.",
          "nvmlDeviceGetComputeRunningProcesses");
inline constexpr MetricDef kOfProcessMemory =
    Metric({"gpu.process.memory", "", "gpu_memory_bytes", "process_gpu_memory_bytes", "By",
            MetricKind::kGauge, Scope::kProcess, 1, "Device memory of one process on one GPU.",
            "nvmlDeviceGetComputeRunningProcesses"});
inline constexpr MetricDef kProcessCount =
    Gauge("gpu.processes", "", "processes", "gpu_processes", "{process}", 1,
          "Compute processes that the driver lists on this GPU, of any user.",
          "nvmlDeviceGetComputeRunningProcesses");

inline constexpr MetricDef kOwnMemory =
    Gauge("gpu.memory.own", "", "own_memory_bytes", "gpu_memory_own_bytes", "By", 1,
          "Device memory of this job's processes, as the driver lists it.",
          "nvmlDeviceGetComputeRunningProcesses");
inline constexpr MetricDef kOthersMemory =
    Gauge("gpu.memory.others", "", "others_memory_bytes", "gpu_memory_others_bytes", "By", 1,
          "Device memory of listed processes that are not this job's.",
          "nvmlDeviceGetComputeRunningProcesses");
inline constexpr MetricDef kUnexplainedMemory =
    Gauge("gpu.memory.unexplained", "", "unexplained_memory_bytes", "gpu_memory_unexplained_bytes",
          "By", 1, "Device memory in use that no process on the driver's lists holds.",
          "nvmlDeviceGetMemoryInfo_v2");

inline constexpr MetricDef kUtilization =
    Gauge("gpu.utilization", "", "utilization_ratio", "gpu_utilization_ratio", "1", kPercentStep,
          "Part of the driver's last window (about 0.2 s) in which any kernel ran, however small.",
          "nvmlDeviceGetUtilizationRates");
inline constexpr MetricDef kMemoryActivity = Gauge(
    "gpu.memory.activity", "", "memory_activity_ratio", "gpu_memory_activity_ratio", "1",
    kPercentStep, "Part of the driver's last window in which device memory was read or written.",
    "nvmlDeviceGetUtilizationRates");

inline constexpr MetricDef kPower = Gauge(
    "gpu.power", "", "power_w", "gpu_power_watts", "W", 0.001,
    "Board power as the driver reports it; the GPU's power_kind says if a mean of 1 s or now.",
    "nvmlDeviceGetPowerUsage");
inline constexpr MetricDef kPowerInstant =
    Gauge("gpu.power.instant", "", "power_instant_w", "gpu_power_instant_watts", "W", 0.001,
          "Board power now.", "NVML field 186");
inline constexpr MetricDef kPowerAverage =
    Gauge("gpu.power.average", "", "power_average_w", "gpu_power_average_watts", "W", 0.001,
          "Board power, average over the last second.", "NVML field 185");
inline constexpr MetricDef kPowerLimit =
    Gauge("gpu.power.limit", "limit=enforced", "power_limit_w", "gpu_power_limit_watts", "W", 0.001,
          "Power limit that holds now.", "nvmlDeviceGetEnforcedPowerLimit");
inline constexpr MetricDef kEnergy = Counter(
    "gpu.energy", "", "energy_j", "gpu_energy_joules_total", "J", 0.001,
    "Energy of the board since the driver was loaded.", "nvmlDeviceGetTotalEnergyConsumption");

inline constexpr MetricDef kTemperature =
    Gauge("gpu.temperature", "sensor=core", "temperature_c", "gpu_temperature_celsius", "Cel", 1,
          "Temperature of the GPU die.", "nvmlDeviceGetTemperature");
inline constexpr MetricDef kMemoryTemperature =
    Gauge("gpu.temperature", "sensor=memory", "memory_temperature_c", "gpu_temperature_celsius",
          "Cel", 1, "Temperature of the device memory.", "NVML field 82");

inline constexpr MetricDef kSmClock =
    Gauge("gpu.clock", "domain=sm", "sm_clock_hz", "gpu_clock_hertz", "Hz", 1e6,
          "Clock of the streaming multiprocessors now.", "nvmlDeviceGetClockInfo");
inline constexpr MetricDef kMemoryClock =
    Gauge("gpu.clock", "domain=mem", "memory_clock_hz", "gpu_clock_hertz", "Hz", 1e6,
          "Clock of the device memory now.", "nvmlDeviceGetClockInfo");
inline constexpr MetricDef kThrottleReasons =
    State("gpu.throttle.reasons", "throttle_reasons", "gpu_throttle_reasons",
          "Bit mask of why clocks are below the highest, as in nvmlClocksEventReason; 1 is idle.",
          "nvmlDeviceGetCurrentClocksEventReasons");

}  // namespace epochmeter::model::gpu
