// SPDX-License-Identifier: Apache-2.0
// The metrics of the run's process tree as a whole. For process_tree.cc.
#pragma once

#include <array>
#include <string_view>

#include "model/host_metrics.h"

namespace epochmeter::collect {

enum TreeMetric : size_t {
  kCpu,
  kRss,
  kThreads,
  kProcesses,
  kRunning,  // the five states in this order
  kSleeping,
  kBlocked,
  kStopped,
  kZombies,
  kMajor,
  kMinor,
  kRead,
  kWritten,
  kCharsRead,
  kCharsWritten,
  kFds,
  kAnon,  // the four parts of memory in this order
  kFile,
  kShmem,
  kSwapped,
  kVoluntary,
  kInvoluntary,
  kRunDelay,
  kPss,
  kMetricCount
};
inline constexpr TreeMetric kFirstSlow = kFds;

// Letters of /proc/PID/stat, and which of the five states each stands for.
inline constexpr std::string_view kStateLetters = "RSIDTtZXx";
inline constexpr std::array<size_t, 9> kStateOfLetter = {0, 1, 1, 2, 3, 3, 4, 4, 4};

consteval model::MetricDef StateGauge(std::string_view label, std::string_view field,
                                      std::string_view help) {
  return model::Metric({"process.state", label, field, "process_tree_states", "{process}",
                        model::MetricKind::kGauge, model::Scope::kProcess, 1, help,
                        "/proc/PID/stat"});
}
consteval model::MetricDef MemoryGauge(std::string_view label, std::string_view field,
                                       std::string_view help) {
  return model::Metric({"process.memory", label, field, "process_tree_memory_bytes", "By",
                        model::MetricKind::kGauge, model::Scope::kProcess, 1024, help,
                        "/proc/PID/status"});
}

inline constexpr std::array<model::MetricDef, kMetricCount> kTreeMetrics = {
    model::host::kTreeCpu,
    model::host::kTreeRss,
    model::host::kTreeThreads,
    model::host::kTreeProcesses,
    StateGauge("state=running", "processes_running",
               "Processes of the run whose main thread runs or waits for a CPU."),
    StateGauge("state=sleeping", "processes_sleeping",
               "Processes of the run whose main thread sleeps."),
    StateGauge("state=blocked", "processes_blocked",
               "Processes of the run in an uninterruptible wait, mostly for storage or a driver."),
    StateGauge("state=stopped", "processes_stopped",
               "Processes of the run that are stopped by a signal or a debugger."),
    StateGauge("state=zombie", "zombies",
               "Processes of the run that have ended and are not waited for."),
    model::host::kTreeMajorFaults,
    model::host::TreeCounter(
        "process.faults", "kind=minor", "minor_faults", "process_tree_page_faults_total", "{fault}",
        1, "Page faults of the run's processes that needed no storage.", "/proc/PID/stat"),
    model::host::kTreeRead,
    model::host::kTreeWritten,
    model::host::TreeCounter("process.io.read_calls", "", "read_call_bytes",
                             "process_tree_read_call_bytes_total", "By", 1,
                             "Bytes that the run's processes read by system calls, from the page "
                             "cache, pipes and sockets too; mapped files are not in it.",
                             "/proc/PID/io"),
    model::host::TreeCounter(
        "process.io.write_calls", "", "write_call_bytes", "process_tree_write_call_bytes_total",
        "By", 1, "Bytes that the run's processes wrote by system calls.", "/proc/PID/io"),
    model::host::TreeGauge("process.fds", "open_fds", "process_tree_open_fds", "{file}",
                           "Open file descriptors of the run's processes.", "/proc/PID/fd"),
    MemoryGauge("part=anon", "anon_bytes", "Resident memory that no file stands behind."),
    MemoryGauge("part=file", "file_bytes", "Resident pages of mapped files, once a process."),
    MemoryGauge("part=shmem", "shmem_bytes", "Resident shared memory, once a process."),
    MemoryGauge("part=swap", "swapped_bytes", "Memory of the run's processes in swap."),
    model::host::TreeCounter("process.context_switches", "kind=voluntary",
                             "voluntary_context_switches", "process_tree_context_switches_total",
                             "{switch}", 1,
                             "Times that a thread gave up its CPU to wait; threads that lived less "
                             "than the sampling period are not seen.",
                             "/proc/PID/task/TID/status"),
    model::host::TreeCounter("process.context_switches", "kind=involuntary",
                             "involuntary_context_switches", "process_tree_context_switches_total",
                             "{switch}", 1,
                             "Times that a thread had its CPU taken away; threads that lived less "
                             "than the sampling period are not seen.",
                             "/proc/PID/task/TID/status"),
    model::host::TreeCounter("process.run_delay", "", "run_delay_s",
                             "process_tree_run_delay_seconds_total", "s", 1e-6,
                             "Time that threads of the run were ready to run and had no CPU.",
                             "/proc/PID/task/TID/schedstat"),
    model::host::TreeGauge("process.pss", "pss_bytes", "process_tree_proportional_memory_bytes",
                           "By",
                           "Resident memory with each shared page split among the processes that "
                           "map it.",
                           "/proc/PID/smaps_rollup"),
};

}  // namespace epochmeter::collect
