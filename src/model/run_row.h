// SPDX-License-Identifier: Apache-2.0
// One run in a table of many, and what runs of one kind need of a machine. Plain values; absent
// figures are empty optionals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/message.h"
#include "model/report.h"

namespace epochmeter::model {

struct RunRow {
  std::string path;
  std::string error;  // why the file can't be read; then nothing else is known
  std::string run_id;
  std::string name;  // what the run or its tag "name" is called; empty when neither says
  std::string command, host;
  std::string state;  // "exit 0", "signal 9", "running", "no end", or why the end is not known
  std::optional<int64_t> started_wall_ns;
  std::optional<double> duration_s;
  uint64_t ranks = 0;
  uint64_t gpus = 0;      // of the job
  std::string gpu_model;  // of the first; empty when not known
  uint64_t epochs = 0;    // by their number, without the row of a loop that has none
  uint64_t steps = 0;     // of the rank that made most
  // Means over the job's GPUs and the whole run.
  std::optional<double> utilization_ratio, sm_active_ratio;
  // The epoch with the highest mean utilisation, over the ranks that tell theirs.
  std::optional<int64_t> peak_epoch;
  std::optional<double> peak_utilization_ratio;
  // Of the GPU that was fullest.
  std::optional<double> gpu_memory_peak_bytes, gpu_memory_total_bytes;
  std::optional<double> iowait_ratio;       // of the host's CPU time
  std::optional<double> data_wait_ratio;    // of the time of all steps of all ranks
  std::optional<double> cpu_cores;          // mean of the job
  std::optional<double> memory_peak_bytes;  // of the job's processes, summed as they are
  std::optional<double> read_bytes_per_s, written_bytes_per_s;  // of the job, means
  std::optional<double> energy_j;
  std::optional<double> gpu_s;  // GPU time: devices x wall time
  // GPU time that brought nothing: the larger of what the bill counts as lost and what the finding
  // that lost most took. They overlap, so they are never added.
  std::optional<double> waste_gpu_s;
  uint64_t criticals = 0, warnings = 0;
  std::string worst_rule;  // of a critical or warning; empty when there is none
  Severity worst_severity = Severity::kInfo;
  Message worst_title;
};

// One figure over runs: how many of them have it.
struct ProfileFigure {
  std::string field;  // with its unit: "gpu_memory_peak_bytes"
  uint64_t runs = 0;
  double p50 = 0, p95 = 0, max = 0;
};

// What runs of one name (or command) took, by which a platform sizes and places the next one.
struct RunProfile {
  std::string name;
  uint64_t runs = 0;
  std::vector<ProfileFigure> figures;  // only those that a run has
};

}  // namespace epochmeter::model
