// SPDX-License-Identifier: Apache-2.0
#include "diagnose/slow_steps.h"

#include <algorithm>
#include <cmath>

#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

constexpr double kScaledMad = 1.4826;
constexpr double kMostSlow = 0.1;

}  // namespace

double SlowSteps::ExcessSeconds() const {
  double seconds = 0;
  for (const SlowStep& step : slow) seconds += step.excess_s;
  return seconds;
}

SlowSteps SlowStepsOf(const RankFacts& rank, double factor, double deviations, size_t fewest) {
  SlowSteps found;
  std::vector<double> durations;
  std::vector<size_t> places;
  for (size_t i = 0; i < rank.steps.size(); ++i) {
    const TrainStep& step = rank.steps[i];
    if (step.warm_up || !(step.duration_s >= 0) || !std::isfinite(step.duration_s)) continue;
    durations.push_back(step.duration_s / step.steps);
    places.push_back(i);
    found.total_s += step.duration_s;
  }
  found.judged = durations.size();
  if (durations.size() < fewest) return found;
  found.median_s = UnsortedMedian(durations).value_or(0);
  std::vector<double> distances;
  distances.reserve(durations.size());
  for (const double duration : durations) distances.push_back(std::fabs(duration - found.median_s));
  const double deviation = kScaledMad * UnsortedMedian(std::move(distances)).value_or(0);
  found.limit_s = std::max(factor * found.median_s, found.median_s + deviations * deviation);
  for (size_t i = 0; i < durations.size(); ++i) {
    if (!(durations[i] > found.limit_s)) continue;
    found.slow.push_back(
        {.at = places[i], .duration_s = durations[i], .excess_s = durations[i] - found.median_s});
  }
  const double most = kMostSlow * static_cast<double>(durations.size());
  if (static_cast<double>(found.slow.size()) >= most) found.slow.clear();
  return found;
}

}  // namespace epochmeter::diagnose
