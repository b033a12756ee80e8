// SPDX-License-Identifier: Apache-2.0
// The parts of a rank's timeline that its training told: steps and phases, each as a list of spans
// that rise and do not overlap.
#pragma once

#include <vector>

#include "diagnose/timeline.h"

namespace epochmeter::diagnose {

struct Span {
  int64_t begin_ns = 0, end_ns = 0;
  Cut what;  // its begin_ns is not used
  // A phase that holds against the step around it: eval, checkpoint, compile. Others are parts of
  // the step, or on their own when there is none.
  bool strong = false;
};

// One go of the training: from one train_begin to the next. The first begins with the wall time.
struct Attempt {
  int64_t begin_ns = 0;
  bool continues = false;  // a training that had not ended, as far as is known
  bool told = true;        // by the training itself, not by the lines of a log
  bool has_steps = false;
  int64_t first_step_ns = 0;  // begin of its first step; its end without steps
};
std::vector<Attempt> FindAttempts(const RankFacts& rank, model::Interval wall);
// The attempt that is under way at `t_ns`.
size_t AttemptAt(const std::vector<Attempt>& attempts, int64_t t_ns);

// Number of the epoch whose row spans `t_ns`; kNotKnown in none.
int64_t EpochAt(const RankFacts& rank, int64_t t_ns);

// Where the rank took no step though it should have, by the limits of stalled_steps; rising.
std::vector<model::Interval> StallsOfRank(const Facts& facts, const RankFacts& rank);

// Sets has_steps and first_step_ns of the attempts.
std::vector<Span> StepSpans(const RankFacts& rank, model::Interval wall,
                            const std::vector<model::Interval>& stalls,
                            std::vector<Attempt>* attempts);
std::vector<Span> PhaseSpans(const RankFacts& rank, model::Interval wall,
                             const std::vector<model::Interval>& stalls, PhaseNames* names);

}  // namespace epochmeter::diagnose
