// SPDX-License-Identifier: Apache-2.0
// Finds the epochs of each rank in a run.
//
// epoch_begin opens an epoch and epoch_end closes it. An epoch whose end was not seen (the next
// begin, a new train_begin or the end of the run came first) is incomplete and ends at the last
// thing seen of its rank before that; one whose end says `partial` was left early and is
// incomplete, too. An epoch that is run again after a restart is a row of its own. An end whose
// begin was lost reaches back by its own duration.
//
// A rank with steps but without epoch events (a plain loop) gets its epochs from the epoch numbers
// of consecutive steps; without such numbers one row with kNoEpoch stands for all its steps.
//
// Processes without a rank are told apart by their pid. When only one of them trains, it owns what
// all of them said, and no pid is shown.
#pragma once

#include <optional>
#include <vector>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// The events of one rank in the order of time; borrows the run.
struct RankEvents {
  std::optional<int32_t> rank;
  std::optional<int64_t> pid;
  std::vector<const model::Event*> events;
  const model::StepTable* steps = nullptr;  // null when it has none
};
std::vector<RankEvents> SplitByRank(const model::Run& run);

// Indexes of the steps in the order of time.
std::vector<size_t> StepOrder(const model::StepTable& steps);

// Rows with rank, epoch, begin, end, complete and duration set, in the order of time.
std::vector<model::EpochRow> FindEpochs(const RankEvents& rank);

}  // namespace epochmeter::diagnose
