// SPDX-License-Identifier: Apache-2.0
// Which rank the others wait for, where all take their steps together. Such ranks have the same
// step times, so what tells them apart is who does *not* wait inside the collective.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/facts.h"

namespace epochmeter::diagnose {

enum class WaitSign : uint8_t {
  kDataWait,     // it waits for its own data for longer than the others
  kComm,         // it spends less time in phases named comm
  kUtilization,  // its GPU is idler: the GPUs of those that wait read busy
};

// A rank that holds the others up. `own` and `others` are shares of the time of steps: of what the
// sign says, for it and for the median of the other ranks.
struct HeldUpBy {
  size_t rank = 0;  // index in Facts::ranks()
  WaitSign sign = WaitSign::kUtilization;
  double own = 0, others = 0;
  double held_ratio = 0;  // part of the steps' time for which the others wait
  double confidence = 0.8;
  bool since_start = true;  // seen in the first part of the steady time too
};

// Whether the ranks take their steps together: their median step times lie within a tenth, or, with
// outliers among many ranks, nine in ten of them do. False for a single rank.
bool StepTogether(const Facts& facts);

// The ranks that hold up the others by more than `least` of the steps' time, the worst first; empty
// when nobody does or nothing tells. Only for ranks that step together.
std::vector<HeldUpBy> FindHeldUpBy(const Facts& facts, double least);

// Whether there is anything to judge by: data waits, comm phases or utilisation of two ranks.
bool CanTellWaits(const Facts& facts);

// Ranks that have GPUs for themselves: the index in Facts::ranks() and those GPUs.
struct RankGpus {
  size_t rank = 0;
  std::vector<int32_t> gpus;
};
std::vector<RankGpus> RanksWithOwnGpus(const Facts& facts);

}  // namespace epochmeter::diagnose
