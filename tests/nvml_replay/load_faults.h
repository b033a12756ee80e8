// SPDX-License-Identifier: Apache-2.0
// The part of a script that says what goes wrong and when.
#pragma once

#include "scenario.h"
#include "script_object.h"

namespace nvml_replay {

// Reads "faults", "events", "system_events" and "latency_us".
void ReadFaults(Object* script, Scenario* scenario);

}  // namespace nvml_replay
