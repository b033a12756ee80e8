// SPDX-License-Identifier: Apache-2.0
// Checkpoints that the training stopped for: as it told them, else as long pauses between steps in
// which the run's processes wrote much. One place for the rule that speaks of them and for those
// that leave them to it. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/facts.h"

namespace epochmeter::diagnose {

struct Saves {
  size_t rank = 0;                     // place in Facts::ranks
  std::vector<model::Interval> spans;  // in the order of time; with the step, where nobody told
  std::vector<int64_t> after_steps;
  bool told = true;
  double total_s = 0;                   // that they took beyond a usual step
  double wall_s = 0;                    // from the first step to the last
  std::optional<double> written_bytes;  // in all spans together
  double Ratio() const { return wall_s > 0 ? total_s / wall_s : 0; }
};

// Of each rank that can be judged: with steps, and told phases or what the processes write. Reads
// the file. Empty when none can.
std::vector<Saves> FindSaves(const Facts& facts);

// Whether they are worth a warning of checkpoint_stall: then others need not warn of the same.
bool SavesMatter(const Facts& facts, const Saves& saves);
// The one of SavesMatter that took longest; nothing when none matters.
std::optional<Saves> WorstSaves(const Facts& facts, std::vector<Saves> saves);

}  // namespace epochmeter::diagnose
