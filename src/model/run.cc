// SPDX-License-Identifier: Apache-2.0
#include "model/run.h"

#include <algorithm>
#include <cmath>

namespace epochmeter::model {
namespace {

// A hole is a distance of more than five periods, and never less than this: schedulers delay a
// 100 ms sampler by hundreds of ms on a loaded node without anything being wrong.
constexpr int64_t kShortestGapNs = base::kNsPerSecond;

}  // namespace

double SampleWeightSeconds(int64_t previous_ns, int64_t t_ns, int64_t period_ns) {
  const int64_t distance = t_ns - previous_ns;
  if (distance <= 0) return 0;
  if (period_ns <= 0) return base::SecondsFromNs(distance);
  const int64_t limit = std::max(5 * period_ns, kShortestGapNs);
  return base::SecondsFromNs(distance > limit ? period_ns : distance);
}

void Summary::Add(int64_t t_ns, double value, double weight) {
  if (count == 0) {
    t_first_ns = t_ns;
    first = min = max = value;
  }
  ++count;
  t_last_ns = t_ns;
  last = value;
  min = std::min(min, value);
  max = std::max(max, value);
  sum += value;
  weighted_sum += value * weight;
  weight_s += weight;
}

void Summary::Append(const Summary& later) {
  if (later.count == 0) return;
  if (count == 0) {
    *this = later;
    return;
  }
  count += later.count;
  t_last_ns = later.t_last_ns;
  last = later.last;
  min = std::min(min, later.min);
  max = std::max(max, later.max);
  sum += later.sum;
  weighted_sum += later.weighted_sum;
  weight_s += later.weight_s;
}

std::optional<double> Summary::Mean() const {
  if (count == 0) return {};
  // Rounding must not carry the mean of a constant beyond the constant.
  if (weight_s > 0) return std::clamp(weighted_sum / weight_s, min, max);
  return sum / static_cast<double>(count);
}

base::Result<SeriesStore::SummaryTable> SeriesStore::SummarizeAll(
    const std::vector<SeriesId>& series, const std::vector<Interval>& intervals) const {
  SummaryTable table;
  for (const SeriesId id : series) {
    std::vector<Summary>& row = table.emplace_back();
    for (const Interval interval : intervals) {
      EPM_ASSIGN(const Summary summary, Summarize(id, interval));
      row.push_back(summary);
    }
  }
  return table;
}

void StepTable::Add(const Event& event) {
  t_ns.push_back(event.t_ns);
  epoch.push_back(event.epoch.value_or(kNotKnown));
  step.push_back(event.step.value_or(kNotKnown));
  for (const EventField& field : event.fields) {
    const auto* whole = std::get_if<int64_t>(&field.value);
    const auto* real = std::get_if<double>(&field.value);
    if (whole == nullptr && real == nullptr) continue;
    const double number = real != nullptr ? *real : static_cast<double>(*whole);
    std::vector<double>& column = columns[field.key];
    if (column.size() == t_ns.size()) continue;  // of two with one name the first
    column.resize(t_ns.size() - 1, kAbsentNumber);
    column.push_back(number);
  }
  for (auto& [name, column] : columns) {
    if (column.size() != t_ns.size()) column.resize(t_ns.size(), kAbsentNumber);
  }
}

ProcessKey ProcessOf(const Event& event) {
  if (event.rank) return {*event.rank};
  const double pid = event.Number("pid").value_or(0);
  return {kNoRank, pid >= 1 && pid < 1e15 ? static_cast<int64_t>(pid) : 0};
}

const std::vector<double>* StepTable::Column(std::string_view name) const {
  const auto found = columns.find(name);
  return found == columns.end() ? nullptr : &found->second;
}

std::optional<SeriesId> Run::FindSeries(EntityId entity, std::string_view field) const {
  for (const SeriesDef& def : series) {
    if (def.entity == entity && def.metric.field == field) return def.id;
  }
  return {};
}

std::vector<const EntityDef*> Run::EntitiesOf(Scope scope) const {
  std::vector<const EntityDef*> found;
  for (const EntityDef& entity : entities) {
    if (entity.scope == scope) found.push_back(&entity);
  }
  return found;
}

Interval Run::Recorded() const {
  if (!info || !end || end->t_ns < info->anchor.mono_ns) return span;
  return {.begin_ns = info->anchor.mono_ns, .end_ns = end->t_ns};
}

std::optional<int64_t> Run::WallNs(int64_t t_ns) const {
  if (!info && anchors.empty()) return {};
  base::ClockAnchor best = info ? info->anchor : anchors.front().clocks;
  const auto after =
      std::upper_bound(anchors.begin(), anchors.end(), t_ns,
                       [](int64_t t, const Anchor& anchor) { return t < anchor.clocks.mono_ns; });
  if (after != anchors.begin()) best = std::prev(after)->clocks;
  return best.wall_ns + (t_ns - best.mono_ns);
}

}  // namespace epochmeter::model
