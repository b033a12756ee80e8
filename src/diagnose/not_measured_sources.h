// SPDX-License-Identifier: Apache-2.0
// What sources and series say themselves of what they could not read.
#pragma once

#include <vector>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// An entry with both of its texts; the Chinese ones may be empty.
model::NotMeasured MakeNotMeasured(model::Message subject, model::Message reason);

// Sources whose last word was a failure, one entry for each reason. True when a source of GPUs is
// among them.
bool AddFailedSources(const model::Run& run, std::vector<model::NotMeasured>* list);

// Sources that are read less often than usual in the end, because the budget of CPU time did not
// allow for more: one entry for all of a process.
void AddReadLess(const model::Run& run, std::vector<model::NotMeasured>* list);

// Series whose last state is not ok; equal ones of several devices or metrics in one entry. What is
// in the list already by the same reason, for a whole source, is not told again.
void AddStates(const model::Run& run, const model::Report& report,
               std::vector<model::NotMeasured>* list);

}  // namespace epochmeter::diagnose
