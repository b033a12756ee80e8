// SPDX-License-Identifier: Apache-2.0
// Findings made by hand, so that what pages show of them does not depend on the rules.
#pragma once

#include <vector>

#include "model/report.h"

namespace epochmeter::testing {

// A critical one with all there is to say, a warning of one GPU, a remark, two not applicable.
std::vector<model::Finding> TinyFindings();

// The report of a run with these findings and nothing that depends on rules.
model::Report TinyReport(const model::Run& run, bool all_gpus);

}  // namespace epochmeter::testing
