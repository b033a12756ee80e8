// SPDX-License-Identifier: Apache-2.0
#include "diagnose/trend.h"

#include <algorithm>
#include <cmath>

#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return Percentile(values, 0.5).value_or(0);
}

// Theil and Sen: the median of the slopes of all pairs. The interval is Sen's (1968): ranks of the
// sorted slopes at 1.96 standard deviations of Kendall's S, n (n - 1) (2 n + 5) / 18, about the
// middle.
void FitLine(std::span<const Floor> floors, Trend* trend) {
  std::vector<double> slopes;
  for (size_t i = 0; i < floors.size(); ++i) {
    for (size_t j = i + 1; j < floors.size(); ++j) {
      const double dx = floors[j].lowest.x - floors[i].lowest.x;
      if (dx > 0) slopes.push_back((floors[j].lowest.value - floors[i].lowest.value) / dx);
    }
  }
  if (slopes.empty()) return;
  std::sort(slopes.begin(), slopes.end());
  const auto n = static_cast<double>(floors.size());
  const auto pairs = static_cast<double>(slopes.size());
  const double reach = 1.96 * std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
  const auto at = [&](double rank) {
    return slopes[static_cast<size_t>(std::clamp(rank, 0.0, pairs - 1))];
  };
  trend->slope = Percentile(slopes, 0.5).value_or(0);
  trend->slope_low = std::min(at(std::floor((pairs - reach) / 2)), trend->slope);
  trend->slope_high = std::max(at(std::ceil((pairs + reach) / 2)), trend->slope);
  std::vector<double> offsets;
  for (const Floor& floor : floors) {
    offsets.push_back(floor.lowest.value - trend->slope * floor.lowest.x);
  }
  trend->at_x = (floors.front().lowest.x + floors.back().lowest.x) / 2;
  trend->at_value = MedianOf(std::move(offsets)) + trend->slope * trend->at_x;
}

// What the floors did from one to the next.
struct Moves {
  double up = 0, down = 0, highest = 0;
  size_t rises = 0;            // moves of at least a fifth of the mean one
  double early = 0, late = 0;  // growth of the first and of the last third
};

Moves MovesOf(std::span<const Floor> floors, double growth) {
  Moves moves;
  const auto at = [&](size_t i) { return floors[i].lowest.value; };
  const double mean = growth / static_cast<double>(floors.size() - 1);
  for (size_t i = 1; i < floors.size(); ++i) {
    const double move = at(i) - at(i - 1);
    (move > 0 ? moves.up : moves.down) += std::abs(move);
    moves.highest = std::max(moves.highest, move);
    if (move >= mean / 5) ++moves.rises;
  }
  const size_t third = (floors.size() - 1) / 3;
  moves.early = at(third) - at(0);
  moves.late = at(floors.size() - 1) - at(floors.size() - 1 - third);
  return moves;
}

double FarthestFromLine(std::span<const Floor> floors, const Trend& trend) {
  double farthest = 0;
  for (const Floor& floor : floors) {
    const double line = trend.at_value + trend.slope * (floor.lowest.x - trend.at_x);
    farthest = std::max(farthest, std::abs(floor.lowest.value - line));
  }
  return farthest;
}

}  // namespace

std::vector<Floor> FloorsOf(std::span<const LevelPoint> points) {
  std::vector<Floor> floors;
  if (points.size() < kFewestTrendSamples) return floors;
  for (size_t window = 0; window < kFloors; ++window) {
    const size_t begin = points.size() * window / kFloors;
    const size_t end = points.size() * (window + 1) / kFloors;
    Floor floor{.lowest = points[begin],
                .interval = {.begin_ns = points[begin].t_ns, .end_ns = points[end - 1].t_ns},
                .samples = end - begin};
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(points[i].value) || !std::isfinite(points[i].x)) return {};
      if (points[i].value < floor.lowest.value) floor.lowest = points[i];
    }
    floors.push_back(floor);
  }
  return floors;
}

std::vector<Floor> JoinFloors(std::span<const Floor> floors) {
  std::vector<Floor> joined;
  const size_t windows = std::min(floors.size(), kFloors);
  for (size_t window = 0; window < windows; ++window) {
    const size_t begin = floors.size() * window / windows;
    const size_t end = floors.size() * (window + 1) / windows;
    Floor floor = floors[begin];
    for (size_t i = begin + 1; i < end; ++i) {
      if (floors[i].lowest.value < floor.lowest.value) floor.lowest = floors[i].lowest;
      floor.interval.end_ns = floors[i].interval.end_ns;
      floor.samples += floors[i].samples;
    }
    joined.push_back(floor);
  }
  return joined;
}

Limits LimitsForFewFloors(const Limits& limits) {
  constexpr double kStraightness = 0.07, kLargestRise = 0.4, kGrowth = 0.02;
  Limits few = limits;
  few.Set("trend.straightness_ratio", std::min(limits["trend.straightness_ratio"], kStraightness));
  few.Set("trend.largest_rise_ratio", std::min(limits["trend.largest_rise_ratio"], kLargestRise));
  few.Set("trend.growth_ratio", std::max(limits["trend.growth_ratio"], kGrowth));
  return few;
}

Trend JudgeFloors(std::span<const Floor> floors, double least_growth, const Limits& limits) {
  Trend trend;
  if (floors.size() < 4) return trend;
  const double first = floors.front().lowest.value;
  trend.growth = floors.back().lowest.value - first;
  FitLine(floors, &trend);
  const double least =
      std::max(least_growth, limits["trend.growth_ratio"] * std::max(std::abs(first), 1.0));
  trend.kind = TrendKind::kFlat;
  if (!(trend.growth >= least) || !(trend.slope > 0)) return trend;
  const Moves moves = MovesOf(floors, trend.growth);
  trend.kind = TrendKind::kUnsteady;
  if (trend.growth < limits["trend.steadiness_ratio"] * (moves.up + moves.down)) return trend;
  trend.kind = TrendKind::kJump;
  if (moves.highest > limits["trend.largest_rise_ratio"] * trend.growth) return trend;
  trend.kind = TrendKind::kPlateau;
  const auto steps = static_cast<double>(floors.size() - 1);
  const bool everywhere = static_cast<double>(moves.rises) >= limits["trend.rises_ratio"] * steps;
  if (!everywhere || moves.late < limits["trend.plateau_ratio"] * moves.early) return trend;
  trend.kind = TrendKind::kUnsteady;
  if (FarthestFromLine(floors, trend) > limits["trend.straightness_ratio"] * trend.growth) {
    return trend;
  }
  trend.kind = TrendKind::kGrows;
  return trend;
}

}  // namespace epochmeter::diagnose
