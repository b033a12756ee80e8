// SPDX-License-Identifier: Apache-2.0
// Tables that give up their least important columns where a page is too narrow.
#pragma once

#include <string>
#include <vector>

#include "render/columns.h"

namespace epochmeter::render {

// `importance` 0 is never dropped; of the others the highest goes first.
struct ColumnPlan {
  TableColumn column;
  int importance = 0;
};

struct FittedTable {
  std::vector<std::string> lines;
  std::vector<std::string> too_wide;  // titles of columns dropped for width, in their order
};

// Drops columns until the table fits into `width`; of equal importance the last goes first.
FittedTable FitTable(std::vector<ColumnPlan> plans, size_t width, std::string_view indent);

}  // namespace epochmeter::render
