// SPDX-License-Identifier: Apache-2.0
// What the client said inside each epoch: steps, scalars, phases.
#pragma once

#include <vector>

#include "diagnose/epochs.h"
#include "model/report.h"

namespace epochmeter::diagnose {

// Sets steps, samples, step_s and data_wait_s of the rows of one rank. A step belongs to the first
// row that spans its end and has its epoch number (or to which it gives none); a step that was left
// in the middle ("partial") counts nowhere. When events were lost on the way, the number of steps
// that the epoch's end carries holds.
void AddSteps(const RankEvents& rank, std::vector<model::EpochRow>* rows);

// The last value of each scalar: of the steps, overridden by scalar events of the epoch and by
// those of its end. One that came after the training's end and names no epoch goes to `after`.
void AddScalars(const RankEvents& rank, std::vector<model::EpochRow>* rows,
                model::AfterTraining* after);

// Phases that ended, by name. One belongs to the latest row before it with the epoch that it
// carries, else to the row that spans it, else to the row that it follows; one that began after the
// training's end and carries no epoch, such as a test of the finished model, goes to `after`.
void AddPhases(const RankEvents& rank, std::vector<model::EpochRow>* rows,
               model::AfterTraining* after);

}  // namespace epochmeter::diagnose
