// SPDX-License-Identifier: Apache-2.0
// Rows of many runs for programs. The shape of the JSON is docs/schema/runs.schema.json, and the
// columns of the csv are its members.
#pragma once

#include <ostream>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "model/run_row.h"

namespace epochmeter::exporting {

// {"runs": [...], "profiles": [...]}.
void WriteRunRows(const std::vector<model::RunRow>& rows,
                  const std::vector<model::RunProfile>& profiles, base::JsonWriter& json);

// A run a row, those that can't be read with their error.
base::Result<> WriteRunRowsCsv(const std::vector<model::RunRow>& rows, std::ostream& out);

}  // namespace epochmeter::exporting
