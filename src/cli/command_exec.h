// SPDX-License-Identifier: Apache-2.0
// How the training's command is started: its environment, and the exec itself.
#pragma once

#include <string>
#include <vector>

#include "cli/run_settings.h"

namespace epochmeter::cli {

// Adds to this process's environment what a recorded training finds there.
void SetEnvironment(const RunSettings& settings);

// Replaces this process by the command; the errno for which that failed.
int ExecCommand(const std::vector<std::string>& command);

// The same, for EPOCHMETER=0. Says a failure, and returns only its exit code.
int ExecPlainly(const std::vector<std::string>& command);

// Where the Python hooks are: EPOCHMETER_PYTHON_DIR, beside the binary in a source tree, or
// ../share/epochmeter/python. Empty when nowhere.
std::string PythonFolder();

}  // namespace epochmeter::cli
