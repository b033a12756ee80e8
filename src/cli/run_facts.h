// SPDX-License-Identifier: Apache-2.0
// The first record of a run: what is known of it and of its machine, redacted.
#pragma once

#include "cli/run_settings.h"
#include "model/record.h"

namespace epochmeter::cli {

model::RunInfo DescribeRun(const RunSettings& settings);

}  // namespace epochmeter::cli
