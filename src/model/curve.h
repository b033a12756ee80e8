// SPDX-License-Identifier: Apache-2.0
// A series thinned to what a picture and a rule can use: a fixed number of buckets over the run,
// each with its sums, and the points that a line through all samples would touch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/metric.h"
#include "model/run.h"

namespace epochmeter::model {

// Buckets over the span of a run. A curve of up to four samples a bucket keeps every sample.
inline constexpr int64_t kCurveBuckets = 1000;

// One figure over the time of a run. Counters are rates here (growth per second, at the later of
// two readings); states keep their numbers.
struct Curve {
  EntityId entity = 0;
  std::string field;  // with the unit: "power_w", "read_bytes_per_s", "cpu_ratio"
  std::string unit;   // UCUM, of the values
  MetricKind kind = MetricKind::kGauge;  // of the series that it was made of
  int64_t period_ns = 0;                 // 0: samples come with events
  bool derived = false;                  // worked out of several series
  bool exact = false;                    // `points` holds every sample
  double resolution = 0;                 // of the values; 0: full doubles
  // First, lowest, highest and last sample of each bucket (M4) in the order of time, or all of
  // them. A point whose value IsAbsent() stands where a hole begins.
  SeriesColumn points;
  int64_t begin_ns = 0, bucket_ns = 0;  // bucket i begins at begin_ns + i * bucket_ns
  std::vector<Summary> buckets;         // count 0 where there is no sample

  int64_t BucketBegin(size_t bucket) const {
    return begin_ns + static_cast<int64_t>(bucket) * bucket_ns;
  }
};

}  // namespace epochmeter::model
