// SPDX-License-Identifier: Apache-2.0
// Whether what a rank holds on its device grows for good. One place for the rules that say so and
// that say when it ends.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/memory.h"

namespace epochmeter::diagnose {

struct DeviceGrowth {
  const RankFacts* rank = nullptr;
  const model::Curve* curve = nullptr;  // what was judged
  std::optional<int32_t> gpu;
  bool of_allocator = false;  // else of what the driver says is in use
  bool by_steps = false;      // x counts steps, else seconds
  bool by_epochs = false;     // floors are those of epochs
  bool by_ends = false;       // floors are the samples at the ends of a few epochs
  size_t epochs_passed = 0;   // epochs that ended between the first and the last floor
  std::vector<LevelPoint> points;
  std::vector<Floor> floors;
  Trend trend;
  double confidence = 0;  // 0..1, of a trend that grows
};

// Judges the allocator's live bytes, else the device memory of the rank's only GPU. Nothing when
// the rank has neither, or too few samples after warm-up.
std::optional<DeviceGrowth> JudgeDeviceGrowth(const Facts& facts, const RankFacts& rank);

// The floor of each of the rank's epochs that has samples, in their order, warm-up included.
struct EpochFloor {
  int64_t epoch = 0;
  Floor floor;
};
std::vector<EpochFloor> EpochFloors(const RankFacts& rank, std::span<const LevelPoint> points);

// x counts steps: what `x` gains in a second, over the steady steps. Nothing without a duration.
std::optional<double> StepsASecond(const RankFacts& rank);

}  // namespace epochmeter::diagnose
