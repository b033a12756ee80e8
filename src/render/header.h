// SPDX-License-Identifier: Apache-2.0
// What a run was: name, command, machine, time, end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "render/text.h"

namespace epochmeter::render {

// Lines without line ends. What the run does not say has no line.
std::vector<std::string> HeaderLines(const model::Run& run, const model::Report& report,
                                     Phrase title, const TextOptions& options);
// Its name, else its id, made plain; empty when it has neither.
std::string RunTitle(const model::Run& run);
// "exit code 1", "killed by signal 9, ...", "still running", "no end was recorded".
std::string EndWords(const model::Run& run, const model::Report& report,
                     const TextOptions& options);
// The value of an attribute of the run; empty when absent.
std::string RunAttribute(const model::Run& run, std::string_view key);
// The model name of a GPU ("NVIDIA H200"); empty when not known.
std::string GpuName(const model::Run& run, const model::GpuStats& gpu);

}  // namespace epochmeter::render
