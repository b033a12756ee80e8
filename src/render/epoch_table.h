// SPDX-License-Identifier: Apache-2.0
// The table of epochs. Columns that are unknown in every row are left out and named; when the rest
// is too wide, the least important are, too.
#pragma once

#include <string>
#include <vector>

#include "render/columns.h"
#include "render/text.h"

namespace epochmeter::render {

// Memory that no process explains is not worth a column below this (256 MiB).
constexpr double kMuchUnexplainedBytes = 268435456;

struct EpochTable {
  std::vector<std::string> lines;
  std::vector<std::string> unknown;   // titles of columns without any value
  std::vector<std::string> too_wide;  // titles of columns dropped for width
  size_t rows_left_out = 0;           // of a long run
  bool has_incomplete = false;        // marked by a star
};

// The table before it is laid out: columns with a value, and the rows that are shown (indexes in
// Report::epochs).
struct EpochCells {
  std::vector<TableColumn> columns;
  std::vector<int> importance;       // of each column, as ColumnPlan has it
  std::vector<std::string> unknown;  // titles of columns without any value
  std::vector<size_t> rows;
  bool has_incomplete = false;
};
EpochCells MakeEpochCells(const model::Report& report, const TextOptions& options);
EpochTable MakeEpochTable(const model::Report& report, const TextOptions& options);

// Phases that are no validation, an epoch and phase a row; empty without any.
std::vector<std::string> MakePhaseTable(const model::Report& report, const TextOptions& options);

}  // namespace epochmeter::render
