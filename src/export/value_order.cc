// SPDX-License-Identifier: Apache-2.0
#include "export/value_order.h"

#include <algorithm>

namespace epochmeter::exporting {

std::vector<ValueRef> ValuesInOrder(const TimeChunk& chunk) {
  std::vector<ValueRef> values;
  for (size_t s = 0; s < chunk.columns.size(); ++s) {
    const model::SeriesColumn& column = chunk.columns[s];
    for (size_t i = 0; i < column.t_ns.size(); ++i) {
      values.push_back({.t_ns = column.t_ns[i], .series = s, .value = column.value[i]});
    }
  }
  std::stable_sort(values.begin(), values.end(),
                   [](const ValueRef& a, const ValueRef& b) { return a.t_ns < b.t_ns; });
  return values;
}

}  // namespace epochmeter::exporting
