// SPDX-License-Identifier: Apache-2.0
// What a run could not tell, each with its reason.
#pragma once

#include <vector>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// Whether the run was made of another tool's file: it has no job that could be recorded otherwise,
// so nothing is advised that only a recorder can do.
bool IsImported(const model::Run& run);

// From series whose last state is not ok (equal ones of several devices or metrics in one line),
// from sources that failed, and from what a report or an epoch needs but the run has no series or
// event of. Where the run file is damaged, no reason is given for an absence but that.
std::vector<model::NotMeasured> FindNotMeasured(const model::Run& run, const model::Report& report);

}  // namespace epochmeter::diagnose
