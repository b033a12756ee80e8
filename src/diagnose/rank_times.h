// SPDX-License-Identifier: Apache-2.0
// Which ranks take longer for the same steps than the others do. For ranks whose step times differ;
// where every step ends in a collective, all take the same time and nobody is found here.
// Work grows with the number of steps of all ranks, times its logarithm.
#pragma once

#include <span>
#include <vector>

#include "diagnose/facts.h"

namespace epochmeter::diagnose {

// One step of one rank, as the comparison takes it.
struct RankStep {
  int64_t step = 0;
  size_t rank = 0;  // any number that tells ranks apart, below RankTimes::size()
  double duration_s = 0;
};

struct RankTime {
  // Steps in which at least kSlowSteps of its last kOfSteps were slower than `k` times the median
  // of the other ranks' times for the same step, and all of these together clearly slower.
  size_t slow = 0;
  int64_t first_slow_step = model::kNotKnown, last_slow_step = model::kNotKnown;
  double worst_ratio = 0;  // own time by the others' median, of its slow steps
  double excess_s = 0;     // what its slow steps took beyond the others' median
  // Windows of kWindowSteps steps that it shares with others, and those of them in which the
  // fastest rank's median is less than `of_best` of its own.
  size_t windows = 0, windows_behind = 0;
  double median_s = 0;  // over all its steps
};

inline constexpr size_t kSlowSteps = 3, kOfSteps = 8, kWindowSteps = 20;

// One entry for each rank below `ranks`. Durations must be finite and above 0.
std::vector<RankTime> CompareRanks(std::vector<RankStep> steps, size_t ranks, double k,
                                   double of_best);
// Steps outside warm-up of all ranks, with the index in Facts::ranks().
std::vector<RankStep> ComparableSteps(const Facts& facts);

// Median of all values but the one at `self`, of values in rising order; at least two.
double MedianOfOthers(std::span<const double> sorted, size_t self);

}  // namespace epochmeter::diagnose
