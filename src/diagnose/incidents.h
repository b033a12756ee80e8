// SPDX-License-Identifier: Apache-2.0
// What went wrong around the training, out of the events that tell it.
#pragma once

#include <string>
#include <vector>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// Incidents in the order of time, each with the epoch of `rows` that was under way: GPUs that were
// lost, came back or were taken away, XIDs and other errors that the driver told, a sampler or
// relay that ended or hung (from the first end until it works again, one incident), a wall clock
// that was set, a machine that was suspended, processes that the kernel killed for memory.
std::vector<model::Incident> FindIncidents(const model::Run& run,
                                           const std::vector<model::EpochRow>& rows);

// The cgroup of the job in which the kernel killed a process for memory as the training ended by
// SIGKILL (or a shell said so with exit code 137); empty when that is not how it ended.
std::string OomCgroup(const model::Run& run);

}  // namespace epochmeter::diagnose
