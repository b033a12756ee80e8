// SPDX-License-Identifier: Apache-2.0
// What went wrong in a training log: cause, events, findings, anomalies, each with its lines.
#pragma once

#include <string>

#include "model/log_report.h"
#include "render/page.h"

namespace epochmeter::render {

// "line 12", with the file's name where there are several.
std::string LogPlaceText(const model::LogReport& report, uint32_t file, uint64_t line,
                         Language language);
void AddLogProblems(const model::LogReport& report, Page* page);

}  // namespace epochmeter::render
