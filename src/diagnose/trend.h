// SPDX-License-Identifier: Apache-2.0
// Whether a level that goes up and down all the time also goes up for good: judged by its floor,
// the lowest value of each window, because what comes back down is no leak. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "diagnose/limits.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// One sample of a level. `x` is what its growth is counted by, steps done or seconds, and does not
// fall.
struct LevelPoint {
  int64_t t_ns = 0;
  double x = 0;
  double value = 0;
};

// The lowest sample of a window of `samples`.
struct Floor {
  LevelPoint lowest;
  model::Interval interval{.begin_ns = 0, .end_ns = 0};
  size_t samples = 0;
};

inline constexpr size_t kFewestTrendSamples = 24;
// Fewer let random walks pass, more miss a leak below a saw-tooth that is longer than a window.
inline constexpr size_t kFloors = 8;

// Of windows with equally many samples, in their order; none of fewer than kFewestTrendSamples, or
// when a value is not finite.
std::vector<Floor> FloorsOf(std::span<const LevelPoint> points);

// At most kFloors of them, neighbours joined: for a floor an epoch of a long training.
std::vector<Floor> JoinFloors(std::span<const Floor> floors);

// Why floors are no leak, or that they are one.
enum class TrendKind : uint8_t { kTooShort, kFlat, kUnsteady, kJump, kPlateau, kGrows };

struct Trend {
  TrendKind kind = TrendKind::kTooShort;
  double growth = 0;                     // last floor less the first
  double slope = 0;                      // a unit of x, by Theil and Sen
  double slope_low = 0, slope_high = 0;  // its interval at 95 %
  double at_x = 0, at_value = 0;         // a point on the line, in its middle
  bool grows() const { return kind == TrendKind::kGrows; }
};

// Grows when the floor gained at least `least_growth` and the table's share of the first floor,
// hardly ever fell, lies along a line, did not rise in one jump, and goes on at the end as it did
// before (trend.* in the table of limits).
Trend JudgeFloors(std::span<const Floor> floors, double least_growth, const Limits& limits);

// Narrower ones, for five to seven floors of one sample each: of random walks of five, 2 in 100
// pass the usual limits, and less than 1 passes these.
Limits LimitsForFewFloors(const Limits& limits);

}  // namespace epochmeter::diagnose
