// SPDX-License-Identifier: Apache-2.0
// What each process of a training said, in the order of time. Pure; any thread.
//
// Processes without a rank are told apart by their pid. When only one of them trains, it owns what
// all of them said, and no pid is shown.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/run.h"

namespace epochmeter::model {

// The events of one rank in the order of time; borrows the run.
struct RankEvents {
  std::optional<int32_t> rank;
  std::optional<int64_t> pid;
  std::vector<const Event*> events;
  const StepTable* steps = nullptr;  // null when it has none
};
std::vector<RankEvents> SplitByRank(const Run& run);

// Whether one of the events, in the order of time, came after `from_ns`, until `to_ns`, and `is`
// so.
template <class Is>
bool AnyBetween(const std::vector<const Event*>& events, int64_t from_ns, int64_t to_ns, Is is) {
  auto at = std::upper_bound(events.begin(), events.end(), from_ns,
                             [](int64_t t_ns, const Event* event) { return t_ns < event->t_ns; });
  for (; at != events.end() && (*at)->t_ns <= to_ns; ++at) {
    if (is(**at)) return true;
  }
  return false;
}

// Indexes of the steps in the order of time.
std::vector<size_t> StepOrder(const StepTable& steps);

// "rank0", "process 4711", "training" when it is the only one: what evidence calls it.
std::string ProcessName(std::optional<int32_t> rank, std::optional<int64_t> pid);

// A phase that is told apart from training: eval, checkpoint, compile, ...
struct PhaseSpan {
  std::string name;
  Interval interval;
  std::optional<int64_t> epoch;
  bool open = false;  // its end was not seen: it ends at the `last_seen_ns` of PhasesOf
};
// In the order of their begins.
std::vector<PhaseSpan> PhasesOf(const RankEvents& rank, int64_t last_seen_ns);

}  // namespace epochmeter::model
