// SPDX-License-Identifier: Apache-2.0
// What a training log comes to, as JSON. The shape is docs/schema/log.schema.json.
#pragma once

#include "base/json_writer.h"
#include "model/log_report.h"
#include "model/run.h"

namespace epochmeter::exporting {

// The member "data" of `log --json`. `run` is what the findings speak of.
void WriteLogData(const model::LogReport& report, const model::Run& run, base::JsonWriter& json);

}  // namespace epochmeter::exporting
