// SPDX-License-Identifier: Apache-2.0
// Parts of the report as JSON, shared by json and jsonl. The shape is
// docs/schema/report.schema.json.
#pragma once

#include <cstdint>

#include "base/json_writer.h"
#include "model/report.h"
#include "model/run.h"

namespace epochmeter::exporting {

// Brief rows lack "gpus", "host" and "process": most of their bytes, which the page does not show.
enum class EpochDetail : uint8_t { kFull, kBrief };

// The member "data" of the report: {"run": ..., "epochs": [...], ...}.
void WriteReportData(const model::Run& run, const model::Report& report, base::JsonWriter& json,
                     EpochDetail detail = EpochDetail::kFull);

// The members of one finding, into an object that is open.
void WriteFindingMembers(const model::Run& run, const model::Finding& finding,
                         base::JsonWriter& json);

// The members of one epoch row, into an object that is open.
void WriteEpochMembers(const model::Run& run, const model::EpochRow& row, base::JsonWriter& json,
                       EpochDetail detail = EpochDetail::kFull);

}  // namespace epochmeter::exporting
