// SPDX-License-Identifier: Apache-2.0
// Steps from the columns of a run file into the tables of a run, without an event for each: a run
// has millions of them. One thread.
#pragma once

#include <cstdint>

#include "model/run_builder.h"
#include "runfile/event_columns.h"

namespace epochmeter::runfile {

// Does what writing every event of `events` would do. `expected` is about how many events will come
// in all, these included: tables get their memory for them at once.
void WriteEvents(const EventTable& events, uint64_t expected, model::RunBuilder& builder);

}  // namespace epochmeter::runfile
