// SPDX-License-Identifier: Apache-2.0
#include "render/fitted_table.h"

#include <algorithm>

namespace epochmeter::render {
namespace {

std::vector<std::string> LayOutPlans(const std::vector<ColumnPlan>& plans,
                                     std::string_view indent) {
  std::vector<TableColumn> columns;
  columns.reserve(plans.size());
  for (const ColumnPlan& plan : plans) columns.push_back(plan.column);
  return LayOut(columns, indent);
}

size_t WidthOf(const std::vector<std::string>& lines) {
  size_t width = 0;
  for (const std::string& line : lines) width = std::max(width, DisplayWidth(line));
  return width;
}

}  // namespace

FittedTable FitTable(std::vector<ColumnPlan> plans, size_t width, std::string_view indent) {
  FittedTable table{.lines = LayOutPlans(plans, indent), .too_wide = {}};
  while (WidthOf(table.lines) > width) {
    const auto least = std::max_element(
        plans.rbegin(), plans.rend(),
        [](const ColumnPlan& a, const ColumnPlan& b) { return a.importance < b.importance; });
    if (least == plans.rend() || least->importance == 0) break;
    table.too_wide.insert(table.too_wide.begin(), least->column.title);
    plans.erase(std::next(least).base());
    table.lines = LayOutPlans(plans, indent);
  }
  return table;
}

}  // namespace epochmeter::render
