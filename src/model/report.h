// SPDX-License-Identifier: Apache-2.0
// What a run says once it is worked out: tables and findings. Renderers and exporters take this
// (and the Run for raw values); no figure is computed by them. Absent figures are empty optionals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/bill.h"
#include "model/curve.h"
#include "model/finding.h"
#include "model/run.h"

namespace epochmeter::model {

// One figure over an interval. `count` samples stand behind it; `coverage_ratio` is the part of the
// interval that they cover (nothing when a gauge has no period). A total covers all of it.
struct Stat {
  uint64_t count = 0;
  std::optional<double> mean, min, max, p50, p95, last;
  std::optional<double> total;  // of a counter: what it grew by
  // The counter was reset inside: the total is what is known of its growth, the least it can be.
  bool at_least = false;
  std::optional<double> coverage_ratio;
};
// Field name (unit included) and its figure, in the order to print.
using StatTable = std::vector<std::pair<std::string, Stat>>;

struct GpuStats {
  int32_t gpu = -1;  // index on this host
  std::string uuid;  // empty when not known
  // Whether it is this job's; nothing when the run does not say which GPUs are.
  std::optional<bool> of_job;
  StatTable stats;  // utilization_ratio, memory_used_bytes, power_w, ...
  std::optional<double> energy_j;
  std::string energy_source;  // "counter", "power_integral"; empty without energy_j
};

// The ledger of device memory, the highest of each over an interval. `own_source` says where the
// job's own part comes from: "processes" is the driver's list; "allocator" is what the frameworks
// have reserved, and the job has at least so much; empty without a figure.
struct MemoryLedger {
  std::optional<double> own_max_bytes, others_max_bytes, unexplained_max_bytes;
  std::string own_source;
};

// Several GPUs in one figure each: means are averaged, powers summed, of maxima the highest. They
// are of the `measured` ones: a GPU that was lost, or not read for a while, is left out. A figure
// that one of these never has is absent.
struct GpuGroup {
  std::vector<int32_t> gpus;      // indexes
  std::vector<int32_t> measured;  // those of them that the figures, and the row's energy, are of
  std::optional<double> utilization_ratio, sm_active_ratio, memory_used_max_bytes;
  std::optional<double> power_w, temperature_max_c;
  MemoryLedger memory;
};

// A stretch of validation (or another phase that is told apart from training).
struct PhaseStats {
  std::string phase;
  uint64_t count = 0;
  double total_s = 0;
  ScalarTable scalars;  // last value of each
};

// EpochRow::epoch of a loop that reports steps but no epochs: one row stands for all its steps.
inline constexpr int64_t kNoEpoch = kNotKnown;

// One epoch of one rank. `complete` is false when it was left early or its end was not seen: then
// `end_ns` is the last thing seen of it. `pid` tells processes apart where several have no rank.
struct EpochRow {
  std::optional<int32_t> rank;
  std::optional<int64_t> pid;
  int64_t epoch = 0;
  int64_t begin_ns = 0, end_ns = 0;
  bool complete = false;
  std::optional<double> duration_s;  // nothing where only one instant of it is known
  uint64_t steps = 0;
  bool steps_known = true;          // else `steps` are what was told of them, each any number
  std::optional<uint64_t> samples;  // sum of batch sizes
  Stat step_s, data_wait_s;
  std::optional<double> data_wait_ratio;  // of the steps' time
  ScalarTable scalars;                    // last value of each in the epoch: loss, ...
  std::vector<PhaseStats> phases;         // eval after or inside the epoch, checkpoint, ...
  std::vector<GpuStats> gpus;
  GpuGroup own_gpus;               // those of the rank; empty when it is not known which
  std::optional<double> energy_j;  // of the rank's own GPUs that were measured
  StatTable host;                  // cpu_ratio, memory_used_bytes, ...
  StatTable process;               // of the training's process tree
  StatTable framework;             // allocated_bytes, reserved_bytes, ...
};

// What a rank did and said after its training, such as a test of the finished model.
struct AfterTraining {
  std::optional<int32_t> rank;
  std::optional<int64_t> pid;
  ScalarTable scalars;  // last value of each
  std::vector<PhaseStats> phases;
};

// What went wrong around the training: a GPU was lost, the kernel killed a process.
struct Incident {
  int64_t t_ns = 0;
  std::optional<int64_t> epoch;  // the one that was under way
  std::optional<int32_t> gpu;
  std::string kind;     // "gpu.lost"
  std::string text;     // "GPU is lost (15)"
  std::string text_zh;  // the same in Chinese; empty where it is in the driver's words only
};

// What could not be measured and why.
struct NotMeasured {
  std::string subject;  // "gpu0 fan speed"
  std::string reason;
  std::string subject_zh, reason_zh;  // in Chinese; empty where there is none
};

struct Report {
  std::string progress_source;  // of epochs and steps: "client", "hook", "output", "none"
  std::vector<EpochRow> epochs;
  std::vector<AfterTraining> after_training;
  std::vector<Incident> incidents;  // in the order of time
  std::string oom_cgroup;      // whose process the kernel killed for memory at the end; empty: none
  std::vector<GpuStats> gpus;  // over the whole run; the job's, unless others were asked for
  StatTable host, process;
  double duration_s = 0;
  std::optional<double> energy_j;  // of the job's GPUs
  std::vector<Finding> findings;   // worst first
  // Ids of the rules that could judge, in their order; one without a finding found nothing.
  std::vector<std::string> rules_judged;
  std::vector<NotMeasured> not_measured;
  std::vector<Curve> curves;  // of all series and derived figures, in the order of run.series
  std::string framework;     // of the training: "paddle", "tensorflow", "pytorch"; empty: not known
  std::optional<Bill> bill;  // what the GPU time went to; BuildReport gives it, tests may have none
};

}  // namespace epochmeter::model
