// SPDX-License-Identifier: Apache-2.0
// Fewer rows for the steps of a very long log. Pure.
#pragma once

#include "model/run.h"

namespace epochmeter::ingest::log {

// Joins each two neighbours into one row that stands for the steps of both: durations, waits and
// counts are added up, all else is of the later one; a loss that is not finite stays.
void JoinNeighbours(model::StepTable* table);

}  // namespace epochmeter::ingest::log
