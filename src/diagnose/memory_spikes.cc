// SPDX-License-Identifier: Apache-2.0
#include "diagnose/memory_spikes.h"

#include <algorithm>
#include <cmath>

#include "diagnose/activity.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

constexpr size_t kMostSpikes = 20;
constexpr double kSlowStep = 2;       // times the median
constexpr double kLargerBatch = 1.2;  // times the mean

bool BesidePhase(const RankFacts& rank, model::Interval interval) {
  return std::any_of(rank.phases.begin(), rank.phases.end(), [&](const PhaseSpan& phase) {
    return phase.interval.begin_ns <= interval.end_ns && phase.interval.end_ns >= interval.begin_ns;
  });
}

// A long run's curve has four samples a bucket: the file has the one where the peak jumped.
void Sharpen(const Facts& facts, const model::Curve& curve, const RankFacts& rank, Spike* spike) {
  if (curve.exact) return;
  const model::SeriesColumn column = facts.Read(curve.entity, curve.field, spike->interval);
  for (size_t i = 1; i < column.t_ns.size(); ++i) {
    const double half = spike->peak_bytes - (spike->need_bytes - spike->usual_bytes) / 2;
    if (column.value[i] < half) continue;
    spike->interval = {.begin_ns = column.t_ns[i - 1], .end_ns = column.t_ns[i]};
    break;
  }
  const auto place = [&](int64_t t_ns) {
    const auto after =
        std::upper_bound(rank.steps.begin(), rank.steps.end(), t_ns,
                         [](int64_t t, const TrainStep& step) { return t < step.end_ns; });
    return static_cast<size_t>(after - rank.steps.begin());
  };
  spike->first = place(spike->interval.begin_ns);
  spike->last = place(spike->interval.end_ns);
}

// A sample from the middle of a step shows what that step did so far.
void AddStepUnderWay(const RankFacts& rank, Spike* spike) {
  const auto& steps = rank.steps;
  const bool began =
      spike->last < steps.size() && steps[spike->last].begin_ns < spike->interval.end_ns;
  if (began) ++spike->last;
}

size_t FirstSteady(const RankFacts& rank) {
  const auto first = std::find_if(rank.steps.begin(), rank.steps.end(),
                                  [](const TrainStep& step) { return !step.warm_up; });
  return static_cast<size_t>(first - rank.steps.begin());
}

// Whether what happened between two points is no warm-up: what came before is known to be over.
bool Judged(const RankFacts& rank, const AllocatorPoint& before, const AllocatorPoint& now,
            size_t first_steady) {
  if (before.step == 0 || before.step < first_steady) return false;
  for (size_t i = std::min(before.step, now.step - 1); i < now.step; ++i) {
    if (!rank.steps[i].warm_up) return true;
  }
  return false;
}

// The largest batch among the spike's steps by the mean one; 1 where batches are not told.
double BatchRatio(const RankFacts& rank, const Spike& spike, size_t* largest) {
  double high = 0;
  for (size_t i = spike.first; i < spike.last; ++i) {
    if (!(rank.steps[i].batch_size > high)) continue;
    *largest = i;
    high = rank.steps[i].batch_size;
  }
  const double usual = MeanBatch(rank).value_or(0);
  return high > 0 && usual > 0 ? high / usual : 1;
}

}  // namespace

std::vector<Spike> FindSpikes(const Facts& facts, const RankFacts& rank,
                              std::span<const AllocatorPoint> points, const model::Curve& peak) {
  const double ratio = facts.limits()["memory_spike.ratio"];
  const size_t first_steady = FirstSteady(rank);
  std::vector<Spike> spikes;
  double usual = points.empty() ? 0 : std::fmax(points.front().peak - points.front().allocated, 0);
  for (size_t i = 1; i < points.size() && spikes.size() < kMostSpikes; ++i) {
    if (!(points[i].peak > points[i - 1].peak)) continue;
    const double need = points[i].peak - points[i - 1].allocated;
    const model::Interval interval{.begin_ns = points[i - 1].t_ns + 1, .end_ns = points[i].t_ns};
    const bool judged = Judged(rank, points[i - 1], points[i], first_steady);
    if (judged && usual > 0 && need >= ratio * usual && !BesidePhase(rank, interval)) {
      spikes.push_back({.interval = interval,
                        .first = points[i - 1].step,
                        .last = points[i].step,
                        .need_bytes = need,
                        .usual_bytes = usual,
                        .peak_bytes = points[i].peak});
      Sharpen(facts, peak, rank, &spikes.back());
      AddStepUnderWay(rank, &spikes.back());
      if (spikes.back().first >= spikes.back().last) spikes.pop_back();
    }
    usual = std::max(usual, need);
  }
  return spikes;
}

DevicePoints PointsOfDevice(const Facts& facts, const RankFacts& rank) {
  DevicePoints device;
  if (rank.gpus.size() != 1 || rank.steps.empty()) return device;
  for (const char* field : {"own_memory_bytes", "process_memory_bytes", "memory_used_bytes"}) {
    const model::Curve* curve = facts.GpuCurve(rank.gpus.front(), field);
    const size_t samples = curve == nullptr ? 0 : curve->points.t_ns.size();
    const size_t most = device.curve == nullptr ? 0 : device.curve->points.t_ns.size();
    // A list of processes that is read seldom says less than the whole device.
    if (samples > 2 * most) device.curve = curve;
  }
  if (device.curve == nullptr) return device;
  double highest = 0;
  size_t step = 0;
  const model::SeriesColumn& column = device.curve->points;
  for (size_t i = 0; i < column.t_ns.size(); ++i) {
    while (step < rank.steps.size() && rank.steps[step].end_ns <= column.t_ns[i]) ++step;
    if (!std::isfinite(column.value[i])) continue;
    highest = std::max(highest, column.value[i]);
    device.points.push_back(
        {.t_ns = column.t_ns[i], .allocated = 0, .peak = highest, .step = step});
  }
  return device;
}

double MedianDuration(const RankFacts& rank) {
  std::vector<double> durations;
  for (const TrainStep& step : rank.steps) {
    if (!step.warm_up && std::isfinite(step.duration_s)) durations.push_back(step.duration_s);
  }
  std::sort(durations.begin(), durations.end());
  return Percentile(durations, 0.5).value_or(model::kAbsentNumber);
}

size_t StepOf(const RankFacts& rank, const Spike& spike) {
  size_t chosen = spike.last - 1;
  if (BatchRatio(rank, spike, &chosen) >= kLargerBatch) return chosen;
  chosen = spike.last - 1;
  for (size_t i = spike.first; i < spike.last; ++i) {
    if (rank.steps[i].duration_s > rank.steps[chosen].duration_s) chosen = i;
  }
  return chosen;
}

bool StandsOut(const RankFacts& rank, const Spike& spike) {
  size_t largest = spike.first;
  return BatchRatio(rank, spike, &largest) >= kLargerBatch ||
         rank.steps[StepOf(rank, spike)].duration_s >= kSlowStep * MedianDuration(rank);
}

}  // namespace epochmeter::diagnose
