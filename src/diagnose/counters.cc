// SPDX-License-Identifier: Apache-2.0
#include "diagnose/counters.h"

#include <algorithm>

#include "base/clock.h"
#include "diagnose/curves.h"
#include "diagnose/own_gpus.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {

std::optional<Growth> GrowthInRun(const Facts& facts, const model::EntityDef& gpu,
                                  std::string_view field) {
  const model::SeriesColumn column = facts.Read(gpu.id, field);
  if (column.t_ns.empty()) return {};
  Growth growth;
  growth.series = "gpu" + std::to_string(GpuIndex(gpu)) + " " + RateField(field);
  growth.seconds = base::SecondsFromNs(column.t_ns.back() - column.t_ns.front());
  growth.when = {.begin_ns = column.t_ns.front(), .end_ns = column.t_ns.front()};
  bool rose = false;
  for (size_t i = 1; i < column.t_ns.size(); ++i) {
    const double before = column.value[i - 1];
    const double risen = column.value[i] - before;
    if (risen == 0 || !(column.value[i] >= 0) || !(before >= 0)) continue;
    // After a reset the counter began at 0 again; a small fall is no reset, and no growth.
    if (risen < 0 && column.value[i] > before / 2) continue;
    growth.at_least = growth.at_least || risen < 0;
    const double more = risen < 0 ? column.value[i] : risen;
    if (more <= 0) continue;
    growth.value += more;
    if (!rose) growth.when.begin_ns = column.t_ns[i - 1];
    growth.when.end_ns = column.t_ns[i];
    rose = true;
  }
  return growth;
}

std::optional<FirstAndLast> StateInRun(const Facts& facts, const model::EntityDef& gpu,
                                       std::string_view field) {
  const model::Curve* curve = facts.FindCurve(gpu.id, field);
  if (curve == nullptr) return {};
  std::optional<FirstAndLast> state;
  for (const model::Summary& bucket : curve->buckets) {
    if (bucket.count == 0) continue;
    if (!state) state = FirstAndLast{.first = bucket.first, .last = bucket.last};
    state->last = bucket.last;
  }
  return state;
}

const RankFacts* OwnerOf(const Facts& facts, std::optional<int32_t> gpu) {
  for (const RankFacts& rank : facts.ranks()) {
    if (gpu && std::find(rank.gpus.begin(), rank.gpus.end(), *gpu) != rank.gpus.end()) return &rank;
  }
  return facts.ranks().size() == 1 ? &facts.ranks().front() : nullptr;
}

const TrainStep* StepAt(const RankFacts& rank, int64_t t_ns) {
  const auto step =
      std::lower_bound(rank.steps.begin(), rank.steps.end(), t_ns,
                       [](const TrainStep& known, int64_t t) { return known.end_ns < t; });
  return step == rank.steps.end() ? nullptr : &*step;
}

bool EndedAt(const Facts& facts, std::optional<int32_t> gpu, int64_t t_ns) {
  const RankFacts* owner = OwnerOf(facts, gpu);
  bool had_steps = false;
  for (const RankFacts& rank : facts.ranks()) {
    if (owner != nullptr && owner != &rank) continue;
    had_steps = had_steps || !rank.steps.empty();
    if (rank.ended || StepAt(rank, t_ns) != nullptr) return false;
  }
  return had_steps;
}

}  // namespace epochmeter::diagnose
