// SPDX-License-Identifier: Apache-2.0
// Tables in logs: a line that names columns, and rows of numbers under it. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/log/line_plan.h"

namespace epochmeter::ingest::log {

struct Columns {
  std::vector<std::string> names;
  char separator = ' ';  // ',', '|', '\t', or ' ' for runs of spaces
  uint64_t hash = 0;
};

// `text` is a line whose plan says that it names columns.
Columns ReadColumns(std::string_view text);

// The plan of a row: its cells under the columns' names. A row that does not fit them has no tier.
LinePlan MakeRowPlan(std::string_view text, const LinePrefix& prefix, const Skeleton& skeleton,
                     const Columns& columns);

}  // namespace epochmeter::ingest::log
