// SPDX-License-Identifier: Apache-2.0
// The front process of `epochmeter run`: parent of the training, the relay and the recorder.
//
// It does nothing that can fail late: it forwards signals, restarts relay and recorder when they
// die or stand still, and ends as the training ended. Why it is not the recorder itself:
// docs/design/0001.
#pragma once

#include "cli/run_settings.h"

namespace epochmeter::cli {

// Runs the command with recording; the exit code of the training, or does not return when the
// training was ended by a signal (it ends itself by the same one; 128+S as pid 1).
int Launch(const RunSettings& settings);

}  // namespace epochmeter::cli
