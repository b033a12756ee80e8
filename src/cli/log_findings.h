// SPDX-License-Identifier: Apache-2.0
// What the rules find in the run that a training log tells of, with the lines that show it.
#pragma once

#include <vector>

#include "diagnose/report_builder.h"
#include "model/log_report.h"
#include "model/run.h"

namespace epochmeter::cli {

// Findings of the rules that a log alone can feed; worst first. Rules that could not judge are left
// out.
std::vector<model::LogFinding> FindingsOfLog(const model::Run& run,
                                             const diagnose::ReportOptions& options);

}  // namespace epochmeter::cli
