// SPDX-License-Identifier: Apache-2.0
// Memory of the host as rules judge it: what bounds the job, and whether what its processes hold
// grows for good. Pure, any thread.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/trend.h"

namespace epochmeter::diagnose {

// What bounds the job: its cgroup's limit where there is one below the machine's memory. Used is
// without page cache that gives way.
struct HostRoom {
  double limit_bytes = 0;
  const model::Curve* used = nullptr;    // never null; of a cgroup: what no file stands behind
  const model::Curve* shared = nullptr;  // of a cgroup: shared memory, comes on top; may be null
  bool of_cgroup = false;
};
std::optional<HostRoom> HostRoomOf(const Facts& facts);

// The most that was in use, with shared memory, and when.
struct HostUse {
  double bytes = 0;
  model::Interval when{0, 0};
};
std::optional<HostUse> HighestUse(const HostRoom& room);

// What time is counted by: the first rank that has steps, else `whole`, which then stands for a
// training without them over the recorded time.
const RankFacts& ClockOf(const Facts& facts, RankFacts* whole);
// The steady stretches of that rank; all of its training when it has no steps.
std::vector<model::Interval> JudgedTime(const RankFacts& clock);

struct HostGrowth {
  std::vector<Floor> floors;  // of epochs where there are six, else of windows
  Trend trend;
  size_t epochs_passed = 0;  // that ended between the first floor and the last
  model::Interval interval{0, 0};
};
// Growth of a level over the steady steps of the clock, at least `least_bytes`. kTooShort when it
// has too few points.
HostGrowth JudgeHostLevel(const Facts& facts, const RankFacts& clock,
                          std::vector<LevelPoint> points, double least_bytes);

// How much a curve gained over an interval, from the first sample inside to the last; nothing
// without two of them.
std::optional<double> GainOf(const model::Curve* curve, model::Interval interval);

}  // namespace epochmeter::diagnose
