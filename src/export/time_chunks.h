// SPDX-License-Identifier: Apache-2.0
// Walks the values of many series through time in stretches, so that a week of a run never lies in
// memory at once. Stretches without any value are passed over.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "export/series_list.h"
#include "model/run.h"

namespace epochmeter::exporting {

struct TimeChunk {
  model::Interval interval;                  // both ends belong to it; neighbours do not overlap
  std::vector<model::SeriesColumn> columns;  // one for each of the series
};

class TimeChunks {
 public:
  // Borrows both. `begin_ns` is where the first stretch starts, `length_ns` how long each is.
  TimeChunks(const model::Run& run, const std::vector<ExportedSeries>& series, int64_t begin_ns,
             int64_t length_ns);

  // The next stretch that has values, nothing after the last.
  base::Result<std::optional<TimeChunk>> Next();

 private:
  base::Result<bool> HasValues(model::Interval interval) const;
  base::Result<> SkipHole();

  const model::Run& run_;
  const std::vector<ExportedSeries>& series_;
  int64_t length_ns_;
  int64_t next_ns_;
  bool after_empty_ = false;
  bool done_ = false;  // the last stretch reached the end of time
};

// The shortest period of the series: the run's sampling interval, a day at most. 1 s when none has
// a period.
int64_t SamplingIntervalNs(const std::vector<ExportedSeries>& series);

}  // namespace epochmeter::exporting
