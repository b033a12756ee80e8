// SPDX-License-Identifier: Apache-2.0
// The lines of `run --print 5s`. Unknown parts are left out, never printed as 0. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace epochmeter::render {

struct LiveGpu {
  int32_t gpu = 0;
  std::optional<double> utilization_ratio, memory_used_bytes, memory_total_bytes;
  std::optional<double> power_w, temperature_c, sm_active_ratio;
};

struct LiveEpoch {
  std::optional<int32_t> rank;  // printed when `many_ranks`
  bool many_ranks = false;
  int64_t epoch = 0;
  std::optional<double> duration_s;
  std::optional<uint64_t> steps;
  std::optional<double> cpu_ratio, memory_used_bytes;  // of the host
  std::optional<double> gpu_utilization_ratio, gpu_memory_bytes, temperature_c;
  // Loss and its like in the order to print; validation ones are named val_... by the caller.
  std::vector<std::pair<std::string, double>> scalars;
};

// Both are one line without a line end: "[10:15:30] GPU-0: util=78%, mem_used=12.4GB, ...".
// `wall_ns` is shown in local time.
std::string LiveGpuLine(int64_t wall_ns, const LiveGpu& gpu);
std::string LiveEpochLine(int64_t wall_ns, const LiveEpoch& epoch);

}  // namespace epochmeter::render
