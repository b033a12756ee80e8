// SPDX-License-Identifier: Apache-2.0
// Figures that only some of the epochs lack.
#pragma once

#include <vector>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// GPUs of a rank that were not measured in an epoch, with what happened to them before, or to the
// sampler.
void AddLostGpus(const model::Run& run, const model::Report& report,
                 std::vector<model::NotMeasured>* list);

// The energy of GPUs that were measured in an epoch and have one elsewhere.
void AddLostEnergy(const model::Report& report, std::vector<model::NotMeasured>* list);

// The CPU figures of epochs that are too short, or in which too little was read, for this reason.
void AddEpochsWithout(const model::Report& report, const model::Message& reason,
                      std::vector<model::NotMeasured>* list);

}  // namespace epochmeter::diagnose
