// SPDX-License-Identifier: Apache-2.0
// The stream as a run file: what writing it costs, and what reading costs a process of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "week_stream.h"

namespace epochmeter::bench {

struct WriteCost {
  uint64_t ticks = 0, values = 0, events = 0, bytes = 0;
  double cpu_s = 0;
  std::vector<double> batch_us;  // CPU a tick, of each 600 ticks: one seal in each
  double BytesPerValue() const;
  double MeanUs() const;
  double MedianUs() const;
  double BestUs() const;  // the tenth percentile of the batches: least disturbed by others
};
// Called after each 600 ticks.
using Progress = std::function<void(uint64_t ticks)>;
// Write, Flush and seals as a recorder does them, one Flush a tick. Ends the program on an error.
WriteCost WriteRun(const std::string& path, const StreamShape& shape, uint64_t ticks,
                   bool with_events, const Progress& progress = {});

// Each prints one line of figures of this process, "key value" pairs, for a parent to read.
void PrintOpen(const std::string& path, bool with_steps);
void PrintMeans(const std::string& path);
void PrintRead(const std::string& path);      // one metric: first and second time
void PrintReadWeek(const std::string& path);  // of one metric, from the middle of the file

}  // namespace epochmeter::bench
