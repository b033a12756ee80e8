// SPDX-License-Identifier: Apache-2.0
#include "diagnose/periods.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace epochmeter::diagnose {
namespace {

constexpr size_t kFewestStalls = 4;
constexpr double kRegularShare = 0.75;
constexpr double kTolerance = 0.1;
constexpr int kMostMissed = 3;  // a stall between two may have stayed below the limit

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Whether most distances are multiples of their median; `slack` is allowed besides the tolerance.
bool IsRegular(const std::vector<double>& distances, double period, double slack) {
  size_t regular = 0;
  for (const double distance : distances) {
    const double times = std::round(distance / period);
    if (times < 1 || times > kMostMissed) continue;
    if (std::fabs(distance - times * period) <= std::max(kTolerance * period, slack)) ++regular;
  }
  return static_cast<double>(regular) >= kRegularShare * static_cast<double>(distances.size());
}

}  // namespace

std::optional<Period> PeriodOf(const RankFacts& rank, const SlowSteps& steps) {
  // The first of each row of neighbours.
  std::vector<size_t> stalls;
  for (size_t i = 0; i < steps.slow.size(); ++i) {
    if (i > 0 && steps.slow[i].at <= steps.slow[i - 1].at + 1) continue;
    stalls.push_back(steps.slow[i].at);
  }
  if (stalls.size() < kFewestStalls) return {};
  std::vector<double> in_steps;
  std::vector<double> in_seconds;
  for (size_t i = 1; i < stalls.size(); ++i) {
    const TrainStep& from = rank.steps[stalls[i - 1]];
    const TrainStep& to = rank.steps[stalls[i]];
    in_steps.push_back(static_cast<double>(stalls[i] - stalls[i - 1]));
    in_seconds.push_back(base::SecondsFromNs(to.end_ns - from.end_ns));
  }
  Period period{.seconds = Median(in_seconds), .stalls = stalls.size()};
  const double step_period = Median(in_steps);
  // Neighbours of neighbours are noise, no period.
  if (step_period >= 5 && IsRegular(in_steps, step_period, 1)) {
    period.steps = step_period;
    return period;
  }
  if (period.seconds >= 1 && step_period >= 5 && IsRegular(in_seconds, period.seconds, 0)) {
    return period;
  }
  return {};
}

}  // namespace epochmeter::diagnose
