// SPDX-License-Identifier: Apache-2.0
// Figures of series for many intervals at once: each series is read a single time.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/curve.h"
#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// Where the figures of one interval go. For the whole run counters are taken from their first to
// their last reading in it. Inside an epoch a total needs both ends bracketed, while a rate may
// stand for a part (see CountedPart) and then says so by its coverage.
struct Target {
  model::Interval interval;
  std::optional<int32_t> rank;
  std::optional<int64_t> pid;
  bool whole_run = false;
  std::vector<model::GpuStats>* gpus = nullptr;
  model::StatTable* host = nullptr;
  model::StatTable* process = nullptr;
  model::StatTable* framework = nullptr;  // null: not wanted
};

// Reads whole series, and makes each one's curve when it is read for the first time; one that
// can't be read is empty and listed with the reason. Threads may read different series at a time.
class SeriesReader {
 public:
  SeriesReader(const model::Run& run, std::vector<model::NotMeasured>* unreadable)
      : run_(run), unreadable_(unreadable), curves_(run.series.size()) {}
  const model::Run& run() const { return run_; }
  model::SeriesColumn Read(model::SeriesId id) const;
  bool WasRead(model::SeriesId id) const { return curves_[id].has_value(); }
  // Those of all that were read and have samples, in the order of the run's series.
  std::vector<model::Curve> TakeCurves() const;

 private:
  const model::Run& run_;
  std::vector<model::NotMeasured>* unreadable_;
  mutable std::vector<std::optional<model::Curve>> curves_;  // each by who reads that series
  mutable std::mutex mutex_;                                 // of what unreadable_ points to
};

// The modes of the host's CPUs, and which of them are work.
struct CpuMode {
  std::string_view field;
  bool busy;
};
std::span<const CpuMode> CpuModes();

// `total` less `free`, at the instants of `free` that have a total at or before them.
model::SeriesColumn UsedOf(const model::SeriesColumn& total, const model::SeriesColumn& free);

// Into targets without GPUs yet: GPUs in the order of their index, gauges first in a fixed order,
// then growth of counters. Energy comes from the energy counter unless it was reset or stood still,
// else from the integral of power_w where its samples cover the interval but for a tenth or one and
// a half periods, and at least half of it.
void AddGpuFigures(const SeriesReader& reader, const std::vector<Target>& targets);
// cpu_ratio (all modes but idle and iowait, of all logical CPUs), memory_used_bytes (total less
// available), swap_used_bytes.
void AddHostFigures(const SeriesReader& reader, const std::vector<Target>& targets);
// cpu_cores (CPU seconds per second), rss_bytes, growth of read_bytes and written_bytes, the rest.
void AddProcessFigures(const SeriesReader& reader, const std::vector<Target>& targets);
// The allocator's figures of the target's rank.
void AddFrameworkFigures(const SeriesReader& reader, const std::vector<Target>& targets);

}  // namespace epochmeter::diagnose
