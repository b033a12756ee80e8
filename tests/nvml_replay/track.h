// SPDX-License-Identifier: Apache-2.0
// A value over play time.
#pragma once

#include <cstdint>
#include <vector>

namespace nvml_replay {

// What a call answers for a value: the value, or the return code that stands in its place.
struct Reading {
  double value = 0;
  int32_t code = 0;
};

// Play time is nanoseconds since the first sample. Points hold until the next one. On top of the
// points a counter may rise (per_s), fall back to 0 at given times and wrap, and a square wave may
// swing between two levels.
struct Track {
  struct Point {
    int64_t t_ns;
    Reading reading;
  };
  std::vector<Point> points;
  double per_s = 0;
  std::vector<int64_t> resets_ns;
  double wrap = 0;  // 0: never
  int64_t wave_ns = 0;
  double wave_high = 0;
  double wave_duty = 0.5;

  // Before the first point its value, after the last point that one. An empty track has no value:
  // NOT_SUPPORTED.
  Reading At(int64_t play_ns) const;
  // Mean of the points in (from, to]; the value in force at `to` when there is none.
  Reading MeanBetween(int64_t from_ns, int64_t to_ns) const;
};

// A track that always shows this.
Track Constant(double value);

}  // namespace nvml_replay
