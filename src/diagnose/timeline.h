// SPDX-License-Identifier: Apache-2.0
// What a rank did at each ns of a run: an exact partition of its time into uses, by what its
// training told. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/facts.h"
#include "model/bill.h"

namespace epochmeter::diagnose {

// From `begin_ns` to the begin of the next cut, or to the end of the timeline, all is the same.
struct Cut {
  int64_t begin_ns = 0;
  int64_t epoch = model::kNotKnown;  // kNotKnown: outside of all
  uint32_t phase = 0;                // in PhaseNames
  model::TimeUse use = model::TimeUse::kUnknown;

  bool SameButTime(const Cut& other) const {
    return epoch == other.epoch && phase == other.phase && use == other.use;
  }
};

// The first cut begins with the wall time, and begins rise: so lengths add up to the whole.
struct Timeline {
  std::vector<Cut> cuts;
  int64_t end_ns = 0;
};

// Numbers for the names of phases, so that cuts stay small. Beyond kMost names all are the last.
class PhaseNames {
 public:
  static constexpr uint32_t kOutside = 0, kTrain = 1;
  static constexpr size_t kMost = 200;
  uint32_t Number(std::string_view name);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_ = {"", "train"};
};

struct RankTimeline {
  Timeline timeline;
  int64_t restarts = 0;     // attempts after the first that continued a training that had not ended
  bool told_steps = false;  // steps, epochs or phases: else all of it is unknown
};

// The partition of `wall`, both ends of it as of a half-open interval. What is told inside another
// holds (the innermost phase); what overlaps is cut; what lies outside of `wall` is left out.
//
// - A step is productive but for the wait for its data, which stands at its beginning. One without
//   a duration reaches back to the step before it in the same epoch.
// - After a new train_begin of a training that had not ended, steps of earlier attempts at or after
//   the first step of the new one are kRepeated: they did not survive.
// - Where the rank took no step though it should have (as in the rule stalled_steps), what is in no
//   phase is kStall; a step that ended at last is productive for as long as one usually takes.
// - Before the first step of each attempt is kStartUp, after the last kTearDown.
// - Where the recorder was away, or steps are known to be lost, what would be idle is kUnknown.
RankTimeline MakeRankTimeline(const Facts& facts, const RankFacts& rank, model::Interval wall,
                              PhaseNames* names);

}  // namespace epochmeter::diagnose
