// SPDX-License-Identifier: Apache-2.0
// The ranks of a job, or its files where they have no ranks: how far each got.
#pragma once

#include "model/log_report.h"
#include "render/page.h"

namespace epochmeter::render {

// Nothing for one file of one rank.
void AddLogRanks(const model::LogReport& report, Page* page);

}  // namespace epochmeter::render
