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
// of consecutive steps; without such numbers one row with kNoEpoch stands for all its steps. Such
// an epoch is complete when the next one follows without a new train_begin, when its last step says
// that it is the last ("ends_epoch"), or when the training ended after it.
#pragma once

#include <optional>
#include <vector>

#include "model/rank_events.h"
#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

using model::RankEvents;
using model::SplitByRank;
using model::StepOrder;

// Rows with rank, epoch, begin, end, complete and duration set, in the order of time.
std::vector<model::EpochRow> FindEpochs(const RankEvents& rank);

}  // namespace epochmeter::diagnose
