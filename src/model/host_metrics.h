// SPDX-License-Identifier: Apache-2.0
// Metrics of the host and of the run's process tree that both a live collector and an importer
// give: one definition each, so that a recorded and an imported run have the same series. What only
// a live collector reads is defined beside it.
#pragma once

#include "model/metric.h"

namespace epochmeter::model::host {

// Cumulative CPU time of the whole host in one mode; guest time is already in user and nice.
consteval MetricDef CpuTime(std::string_view label, std::string_view field, std::string_view help) {
  return Metric({"host.cpu", label, field, "host_cpu_seconds_total", "s", MetricKind::kCounter,
                 Scope::kHost, 0.01, help, "/proc/stat"});
}
inline constexpr MetricDef kCpuUser =
    CpuTime("mode=user", "cpu_user_s", "CPU time in user mode, all CPUs together.");
inline constexpr MetricDef kCpuNice =
    CpuTime("mode=nice", "cpu_nice_s", "CPU time in user mode at lowered priority.");
inline constexpr MetricDef kCpuSystem =
    CpuTime("mode=system", "cpu_system_s", "CPU time in the kernel.");
inline constexpr MetricDef kCpuIdle = CpuTime("mode=idle", "cpu_idle_s", "CPU time with no work.");
inline constexpr MetricDef kCpuIowait = CpuTime(
    "mode=iowait", "cpu_iowait_s", "Idle CPU time while a task waited for a disk; may fall.");
inline constexpr MetricDef kCpuIrq =
    CpuTime("mode=irq", "cpu_irq_s", "CPU time in hardware interrupts.");
inline constexpr MetricDef kCpuSoftirq =
    CpuTime("mode=softirq", "cpu_softirq_s", "CPU time in software interrupts.");
inline constexpr MetricDef kCpuSteal =
    CpuTime("mode=steal", "cpu_steal_s", "CPU time that the hypervisor gave to others.");

consteval MetricDef Memory(std::string_view name, std::string_view field,
                           std::string_view prometheus, std::string_view help) {
  return Metric({name, "", field, prometheus, "By", MetricKind::kGauge, Scope::kHost, 1024, help,
                 "/proc/meminfo"});
}
inline constexpr MetricDef kMemoryTotal =
    Memory("host.memory.total", "memory_total_bytes", "host_memory_capacity_bytes",
           "Memory that the kernel manages.");
inline constexpr MetricDef kMemoryAvailable =
    Memory("host.memory.available", "memory_available_bytes", "host_memory_available_bytes",
           "The kernel's estimate of what new programs can take without swapping.");
inline constexpr MetricDef kMemoryCached =
    Memory("host.memory.cached", "memory_cached_bytes", "host_memory_cached_bytes",
           "Page cache, shared memory included.");
inline constexpr MetricDef kSwapTotal =
    Memory("host.swap.total", "swap_total_bytes", "host_swap_capacity_bytes", "Swap space.");
inline constexpr MetricDef kSwapFree =
    Memory("host.swap.free", "swap_free_bytes", "host_swap_free_bytes", "Swap space not in use.");

// Sums over the run's process tree; a process that ended keeps its part of the counters.
consteval MetricDef TreeGauge(std::string_view name, std::string_view field,
                              std::string_view prometheus, std::string_view unit,
                              std::string_view help, std::string_view source) {
  return Metric(
      {name, "", field, prometheus, unit, MetricKind::kGauge, Scope::kProcess, 1, help, source});
}
consteval MetricDef TreeCounter(std::string_view name, std::string_view label,
                                std::string_view field, std::string_view prometheus,
                                std::string_view unit, double resolution, std::string_view help,
                                std::string_view source) {
  return Metric({name, label, field, prometheus, unit, MetricKind::kCounter, Scope::kProcess,
                 resolution, help, source});
}
inline constexpr MetricDef kTreeCpu =
    TreeCounter("process.cpu", "", "cpu_s", "process_tree_cpu_seconds_total", "s", 0.01,
                "CPU time of the run's processes, user and system.", "/proc/PID/stat");
inline constexpr MetricDef kTreeRss = TreeGauge(
    "process.rss", "rss_bytes", "process_tree_resident_memory_bytes", "By",
    "Resident memory of the run's processes; shared pages count once a process.", "/proc/PID/stat");
inline constexpr MetricDef kTreeThreads =
    TreeGauge("process.threads", "threads", "process_tree_threads", "{thread}",
              "Threads of the run's processes.", "/proc/PID/stat");
inline constexpr MetricDef kTreeProcesses =
    TreeGauge("process.count", "processes", "process_tree_processes", "{process}",
              "Processes of the run.", "/proc");
inline constexpr MetricDef kTreeRead =
    TreeCounter("process.io.read", "", "read_bytes", "process_tree_read_bytes_total", "By", 1,
                "Bytes that the run's processes had read from storage (not from the page cache).",
                "/proc/PID/io");
inline constexpr MetricDef kTreeWritten =
    TreeCounter("process.io.written", "", "written_bytes", "process_tree_written_bytes_total", "By",
                1, "Bytes that the run's processes had written towards storage.", "/proc/PID/io");
inline constexpr MetricDef kTreeMajorFaults = TreeCounter(
    "process.faults", "kind=major", "major_faults", "process_tree_page_faults_total", "{fault}", 1,
    "Page faults of the run's processes that had to read storage.", "/proc/PID/stat");

}  // namespace epochmeter::model::host
