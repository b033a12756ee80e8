// SPDX-License-Identifier: Apache-2.0
#include "diagnose/leak.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace epochmeter::diagnose {
namespace {

// Fewer floors of epochs tell less than windows of steps do.
constexpr size_t kFewestEpochs = 6;
// After the first one, where an allocator is read too seldom to judge what lies between.
constexpr size_t kFewestEpochEnds = 4;
constexpr double kAllocatorConfidence = 0.95;
constexpr double kEpochEndsConfidence = 0.75;
constexpr double kWithinEpochConfidence = 0.85;  // no epoch's end was seen to free it
constexpr double kWithoutStepsConfidence = 0.7;
constexpr double kDriverConfidence = 0.6;  // a cache of the allocator looks the same

// Whole epochs after the first: warm-up is over, and what an epoch frees at its end is freed.
std::vector<Floor> SteadyEpochs(const RankFacts& rank, std::span<const LevelPoint> points) {
  std::vector<Floor> floors;
  if (points.empty()) return floors;
  const std::vector<EpochFloor> all = EpochFloors(rank, points);
  for (const EpochFloor& epoch : all) floors.push_back(epoch.floor);
  return floors;
}

size_t EpochsPassed(const RankFacts& rank, std::span<const Floor> floors) {
  if (floors.empty()) return 0;
  const int64_t begin_ns = floors.front().lowest.t_ns;
  const int64_t end_ns = floors.back().lowest.t_ns;
  return static_cast<size_t>(
      std::count_if(rank.rows.begin(), rank.rows.end(), [&](const model::EpochRow* row) {
        return row->epoch != model::kNoEpoch && begin_ns < row->end_ns && row->end_ns <= end_ns;
      }));
}

// What the allocator held as each complete epoch ended: the last sample before the next epoch
// began. Loops read it there whatever the period.
std::vector<Floor> EpochEnds(const Facts& facts, const RankFacts& rank) {
  const std::vector<AllocatorPoint> points = AllocatorPoints(facts, rank);
  std::vector<Floor> ends;
  size_t at = 0;
  for (size_t i = 0; i < rank.rows.size(); ++i) {
    const model::EpochRow& row = *rank.rows[i];
    if (row.epoch == model::kNoEpoch || !row.complete || row.steps == 0) continue;
    const bool last = i + 1 == rank.rows.size();
    const int64_t until_ns = last ? rank.training.end_ns : rank.rows[i + 1]->begin_ns;
    while (at < points.size() && points[at].t_ns < row.begin_ns) ++at;
    Floor end;
    for (; at < points.size() && points[at].t_ns <= until_ns; ++at) {
      end.lowest = {.t_ns = points[at].t_ns, .x = points[at].x, .value = points[at].allocated};
      ++end.samples;
    }
    end.interval = {.begin_ns = row.begin_ns, .end_ns = end.lowest.t_ns};
    if (end.samples > 0) ends.push_back(end);
  }
  return ends;
}

// Nothing when there are too few of them.
void JudgeEnds(const Facts& facts, DeviceGrowth* growth) {
  const std::vector<Floor> ends = EpochEnds(facts, *growth->rank);
  if (ends.size() < kFewestEpochEnds + 1) return;
  growth->by_ends = true;
  growth->by_epochs = true;
  growth->floors = JoinFloors(ends);
  growth->trend = JudgeFloors(growth->floors, facts.limits()["gpu_memory_leak.least_bytes"],
                              LimitsForFewFloors(facts.limits()));
  growth->epochs_passed = growth->floors.size() - 1;
  growth->confidence = kEpochEndsConfidence;
}

void Judge(const Facts& facts, DeviceGrowth* growth) {
  std::vector<Floor> epochs = SteadyEpochs(*growth->rank, growth->points);
  growth->by_epochs = epochs.size() >= kFewestEpochs;
  growth->floors = growth->by_epochs ? JoinFloors(epochs) : FloorsOf(growth->points);
  growth->trend =
      JudgeFloors(growth->floors, facts.limits()["gpu_memory_leak.least_bytes"], facts.limits());
  growth->epochs_passed = EpochsPassed(*growth->rank, growth->floors);
  growth->confidence = !growth->of_allocator        ? kDriverConfidence
                       : !growth->by_steps          ? kWithoutStepsConfidence
                       : growth->epochs_passed == 0 ? kWithinEpochConfidence
                                                    : kAllocatorConfidence;
}

// What the driver says is in use: by the job's processes where it tells often enough, else by all.
const model::Curve* DriverCurve(const Facts& facts, const RankFacts& rank) {
  if (rank.gpus.size() != 1) return nullptr;
  const model::Curve* any = nullptr;
  for (const char* field : {"own_memory_bytes", "process_memory_bytes", "memory_used_bytes"}) {
    const model::Curve* curve = facts.GpuCurve(rank.gpus.front(), field);
    if (curve == nullptr || curve->points.t_ns.empty()) continue;
    if (LevelPoints(rank, *curve).size() >= kFewestTrendSamples) return curve;
    if (any == nullptr) any = curve;
  }
  return any;
}

}  // namespace

std::vector<EpochFloor> EpochFloors(const RankFacts& rank, std::span<const LevelPoint> points) {
  std::vector<EpochFloor> floors;
  size_t at = 0;
  for (const model::EpochRow* row : rank.rows) {
    if (row->epoch == model::kNoEpoch) continue;
    while (at < points.size() && points[at].t_ns < row->begin_ns) ++at;
    EpochFloor epoch{.epoch = row->epoch};
    for (; at < points.size() && points[at].t_ns <= row->end_ns; ++at) {
      Floor& floor = epoch.floor;
      if (floor.samples++ == 0) {
        floor.lowest = points[at];
        floor.interval.begin_ns = points[at].t_ns;
      }
      if (points[at].value < floor.lowest.value) floor.lowest = points[at];
      floor.interval.end_ns = points[at].t_ns;
    }
    if (epoch.floor.samples > 0) floors.push_back(epoch);
  }
  return floors;
}

std::optional<DeviceGrowth> JudgeDeviceGrowth(const Facts& facts, const RankFacts& rank) {
  DeviceGrowth growth;
  growth.rank = &rank;
  growth.by_steps = !rank.steps.empty();
  growth.curve = facts.FrameworkCurve(rank, "allocated_bytes");
  growth.of_allocator = growth.curve != nullptr;
  if (growth.of_allocator) {
    growth.gpu = AllocatorGpu(facts, rank);
    growth.points = HeldPoints(rank, AllocatorPoints(facts, rank));
  } else {
    growth.curve = DriverCurve(facts, rank);
    if (growth.curve == nullptr) return {};
    growth.gpu = rank.gpus.front();
    growth.points = LevelPoints(rank, *growth.curve);
  }
  Judge(facts, &growth);
  const bool seldom = growth.trend.kind == TrendKind::kTooShort;
  if (seldom && growth.of_allocator && growth.by_steps) JudgeEnds(facts, &growth);
  if (growth.trend.kind == TrendKind::kTooShort) return {};
  return growth;
}

std::optional<double> StepsASecond(const RankFacts& rank) {
  double steps = 0, seconds = 0;
  for (const TrainStep& step : rank.steps) {
    if (step.warm_up || !std::isfinite(step.duration_s) || step.duration_s <= 0) continue;
    steps += step.steps;
    seconds += step.duration_s;
  }
  if (steps <= 0 || seconds <= 0) return {};
  return steps / seconds;
}

}  // namespace epochmeter::diagnose
