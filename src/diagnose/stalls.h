// SPDX-License-Identifier: Apache-2.0
// Stretches in which a training took no step though it should have.
#pragma once

#include <vector>

#include "diagnose/facts.h"

namespace epochmeter::diagnose {

struct Stall {
  size_t rank = 0;  // index in Facts::ranks()
  model::Interval interval;
  bool open = false;                      // no step came after it
  bool ended = false;                     // nor did one come before the training told its end
  int64_t after_step = model::kNotKnown;  // the last step before it
  double median_s = 0;                    // usual time from one step event to the next
};

// Of a rank's step events: median time from one to the next outside warm-up; nothing below three.
std::optional<double> StepPeriodSeconds(const RankFacts& rank);

// Where rank `index` was silent for longer than `factor` times its usual time between steps, and
// than `floor_s`. Evaluation, checkpoints, compilation and phases of the user's own are no silence
// unless one never ended and lasts ten times as long as the others of its name. Nor are start-up,
// what follows the end of the training or an exception, a regular pause between epochs, and the
// time until a training was begun anew. What lies between the last step and the told end counts
// where there are several ranks, as `ended`.
std::vector<Stall> StallsOf(const Facts& facts, size_t index, double factor, double floor_s);

// By the limits of stalled_steps, over all ranks, joined: what other rules leave to it.
std::vector<model::Interval> StalledTime(const Facts& facts);

}  // namespace epochmeter::diagnose
