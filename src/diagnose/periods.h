// SPDX-License-Identifier: Apache-2.0
// Whether slow steps come in regular distances. Pure functions.
#pragma once

#include <optional>

#include "diagnose/slow_steps.h"

namespace epochmeter::diagnose {

struct Period {
  double steps = 0;    // from one slow step to the next; 0 when regular in time only
  double seconds = 0;  // the median distance
  size_t stalls = 0;   // slow steps, neighbours counted as one
};

// At least four stalls, of whose distances three quarters are the same (within a tenth of it, or
// one step) or a multiple of it up to three: counted in steps, else in seconds. Steps that restart
// counting make no distance.
std::optional<Period> PeriodOf(const RankFacts& rank, const SlowSteps& steps);

}  // namespace epochmeter::diagnose
