// SPDX-License-Identifier: Apache-2.0
// Steps of a rank that took far longer than its others. Pure functions.
#pragma once

#include <vector>

#include "diagnose/facts.h"

namespace epochmeter::diagnose {

struct SlowStep {
  size_t at = 0;  // in RankFacts::steps
  double duration_s = 0;
  double excess_s = 0;  // beyond the median
};

// Of the steps outside warm-up with a duration (of steps that ran in one go, of each).
struct SlowSteps {
  size_t judged = 0;
  double total_s = 0;  // of all that were judged
  double median_s = 0;
  double limit_s = 0;  // from which a step is slow
  std::vector<SlowStep> slow;
  double ExcessSeconds() const;
  double ExcessRatio() const { return total_s > 0 ? ExcessSeconds() / total_s : 0; }
};

// Slow is above `factor` times the median and above the median by `deviations` times the scaled
// median absolute deviation (1.4826 * MAD, which is one standard deviation of normal noise).
// Nothing is slow among fewer than `fewest` steps, or where a tenth or more of them would be: then
// the steps are of several kinds, and none is out of the common.
SlowSteps SlowStepsOf(const RankFacts& rank, double factor, double deviations, size_t fewest = 30);

}  // namespace epochmeter::diagnose
