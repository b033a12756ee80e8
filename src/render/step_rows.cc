// SPDX-License-Identifier: Apache-2.0
#include "render/step_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/strings.h"
#include "model/m4.h"
#include "model/rank_events.h"

namespace epochmeter::render {
namespace {

using model::StepTable;

constexpr size_t kThinnedScalars = 3;
constexpr size_t kRowsABucket = 4;

// The columns whose extremes must survive.
std::vector<const std::vector<double>*> ColumnsToKeep(const StepTable& steps) {
  std::vector<const std::vector<double>*> columns;
  for (const char* name : {"duration_s", "data_wait_s"}) {
    if (const std::vector<double>* column = steps.Column(name)) columns.push_back(column);
  }
  size_t scalars = 0;
  for (const auto& [name, column] : steps.columns) {
    if (!base::StartsWith(name, kScalarPrefix) || ++scalars > kThinnedScalars) continue;
    columns.push_back(&column);
  }
  return columns;
}

// The rows `order[from..to)` that must survive for one column.
void KeepOf(const std::vector<double>& column, std::span<const size_t> rows,
            std::vector<size_t>* kept) {
  size_t low = rows.front(), high = rows.front();
  bool any = false, wild = false;
  for (const size_t row : rows) {
    const double value = column[row];
    if (!std::isfinite(value)) {
      if (!wild && !model::IsAbsent(value)) kept->push_back(row);
      wild = wild || !model::IsAbsent(value);
      continue;
    }
    if (!any || value < column[low]) low = row;
    if (!any || value > column[high]) high = row;
    any = true;
  }
  if (!any) return;
  kept->push_back(low);
  kept->push_back(high);
}

// A step's identity over the ranks.
using StepKey = std::pair<int64_t, int64_t>;

StepKey KeyOf(const StepTable& table, size_t row) { return {table.epoch[row], table.step[row]}; }

// Rows by rising key; of equal keys (a restart repeats steps) the last one told.
std::vector<size_t> RowsByKey(const StepTable& table) {
  std::vector<size_t> rows;
  rows.reserve(table.size());
  for (size_t row = 0; row < table.size(); ++row) {
    if (table.step[row] != model::kNotKnown) rows.push_back(row);
  }
  const auto less = [&](size_t a, size_t b) { return KeyOf(table, a) < KeyOf(table, b); };
  if (!std::is_sorted(rows.begin(), rows.end(), less)) {
    std::stable_sort(rows.begin(), rows.end(), less);
  }
  size_t kept = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool repeated = i + 1 < rows.size() && KeyOf(table, rows[i]) == KeyOf(table, rows[i + 1]);
    if (!repeated) rows[kept++] = rows[i];
  }
  rows.resize(kept);
  return rows;
}

// A step that every table so far has.
struct Shared {
  StepKey key;
  int64_t t_ns = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  double longest_s = 0;
  size_t least_at = 0, most_at = 0;

  void Add(double value, double duration_s, size_t table) {
    if (value < least) least = value, least_at = table;
    if (value > most) most = value, most_at = table;
    longest_s = std::max(longest_s, duration_s);
  }
};

// Keeps of `shared` what `table` has, too.
void Join(const StepTable& table, const std::vector<double>& column,
          const std::vector<double>& durations, size_t index, std::vector<Shared>* shared) {
  const std::vector<size_t> rows = RowsByKey(table);
  size_t at = 0, kept = 0;
  for (Shared& step : *shared) {
    while (at < rows.size() && KeyOf(table, rows[at]) < step.key) ++at;
    if (at == rows.size()) break;
    const size_t row = rows[at];
    if (KeyOf(table, row) != step.key || !std::isfinite(column[row])) continue;
    step.Add(column[row], std::isfinite(durations[row]) ? durations[row] : 0, index);
    (*shared)[kept++] = step;
  }
  shared->resize(kept);
}

std::vector<Shared> StepsOf(const StepTable& table) {
  std::vector<Shared> steps;
  for (const size_t row : RowsByKey(table)) {
    steps.push_back({.key = KeyOf(table, row), .t_ns = table.t_ns[row]});
  }
  return steps;
}

}  // namespace

std::vector<size_t> ShownSteps(const StepTable& steps, size_t buckets) {
  std::vector<size_t> order = model::StepOrder(steps);
  buckets = std::max<size_t>(buckets, 1);
  if (order.size() <= buckets * kRowsABucket) return order;
  const std::vector<const std::vector<double>*> columns = ColumnsToKeep(steps);
  std::vector<size_t> shown, kept;
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    const size_t from = bucket * order.size() / buckets;
    const size_t to = (bucket + 1) * order.size() / buckets;
    const std::span<const size_t> rows(order.data() + from, to - from);
    kept = {rows.front(), rows.back()};
    for (const std::vector<double>* column : columns) KeepOf(*column, rows, &kept);
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    std::stable_sort(kept.begin(), kept.end(),
                     [&](size_t a, size_t b) { return steps.t_ns[a] < steps.t_ns[b]; });
    shown.insert(shown.end(), kept.begin(), kept.end());
  }
  return shown;
}

SlowestSteps FindSlowest(std::span<const StepTable* const> tables, size_t most) {
  constexpr double kStandsOut = 0.05;
  const auto all_have = [&](std::string_view name) {
    return std::all_of(tables.begin(), tables.end(),
                       [&](const StepTable* table) { return table->Column(name) != nullptr; });
  };
  if (tables.size() < 2 || !all_have("duration_s")) return {};
  const bool waits = all_have("collective_wait_s");
  std::vector<Shared> shared = StepsOf(*tables.front());
  for (size_t i = 0; i < tables.size() && !shared.empty(); ++i) {
    const StepTable& table = *tables[i];
    const std::vector<double>& durations = *table.Column("duration_s");
    Join(table, waits ? *table.Column("collective_wait_s") : durations, durations, i, &shared);
  }
  std::erase_if(shared, [](const Shared& step) {
    return !(step.most - step.least >= kStandsOut * step.longest_s) || step.longest_s <= 0;
  });
  SlowestSteps slowest;
  const size_t count = std::min(most, shared.size());
  for (size_t i = 0; i < count; ++i) {
    const Shared& step = shared[i * shared.size() / count];
    slowest.t_ns.push_back(step.t_ns);
    slowest.table.push_back(waits ? step.least_at : step.most_at);
  }
  return slowest;
}

}  // namespace epochmeter::render
