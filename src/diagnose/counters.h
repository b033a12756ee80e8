// SPDX-License-Identifier: Apache-2.0
// What counters of a GPU's faults grew by in this run, and when. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/facts.h"

namespace epochmeter::diagnose {

struct Growth {
  double value = 0;            // what the counter had before the run is not in it
  bool at_least = false;       // it was reset in between
  double seconds = 0;          // from its first to its last reading
  model::Interval when{0, 0};  // from the first to the last reading that rose
  std::string series;          // the curve's name: its rate
};
// Nothing when the GPU has no such counter.
std::optional<Growth> GrowthInRun(const Facts& facts, const model::EntityDef& gpu,
                                  std::string_view field);

// A state's first and last value; nothing without a sample.
struct FirstAndLast {
  double first = 0, last = 0;
};
std::optional<FirstAndLast> StateInRun(const Facts& facts, const model::EntityDef& gpu,
                                       std::string_view field);

// Whether a training that had made steps made none after `t_ns` without saying that it was done: of
// the rank that uses the GPU, of all ranks when it is not known whose it is.
bool EndedAt(const Facts& facts, std::optional<int32_t> gpu, int64_t t_ns);
// The rank that uses the GPU, or the only one; null when that is not known.
const RankFacts* OwnerOf(const Facts& facts, std::optional<int32_t> gpu);
// The first step of the rank that ended at that time or later; null when none did.
const TrainStep* StepAt(const RankFacts& rank, int64_t t_ns);

}  // namespace epochmeter::diagnose
