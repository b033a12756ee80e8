// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/step_tables.h"

#include <cmath>
#include <string_view>

namespace epochmeter::ingest::log {
namespace {

// The value that a joined row has in a column.
double Joined(std::string_view column, double earlier, double later) {
  const bool sum = column == "duration_s" || column == "data_wait_s" || column == "steps";
  if (sum) {
    const bool known = !model::IsAbsent(earlier) && !model::IsAbsent(later);
    return known ? earlier + later : model::kAbsentNumber;
  }
  const bool worse =
      column == "scalar.loss" && !std::isfinite(earlier) && !model::IsAbsent(earlier);
  return worse || model::IsAbsent(later) ? earlier : later;
}

}  // namespace

void JoinNeighbours(model::StepTable* table) {
  const size_t pairs = table->size() / 2;
  const bool odd = table->size() % 2 != 0;
  const auto shorten = [pairs, odd](auto& values, const auto& join) {
    for (size_t i = 0; i < pairs; ++i) values[i] = join(values[2 * i], values[2 * i + 1]);
    if (odd) values[pairs] = values[2 * pairs];
    values.resize(pairs + (odd ? 1 : 0));
  };
  const auto later = [](int64_t /*earlier*/, int64_t last) { return last; };
  shorten(table->t_ns, later);
  shorten(table->epoch, later);
  shorten(table->step, later);
  for (auto& [name, column] : table->columns) {
    shorten(column, [&name = name](double a, double b) { return Joined(name, a, b); });
  }
}

}  // namespace epochmeter::ingest::log
