// SPDX-License-Identifier: Apache-2.0
// Device memory as rules judge it: a rank's allocator sample by sample beside its steps, and what
// the device has room for. Absent figures are NaN in points and empty optionals elsewhere.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/trend.h"

namespace epochmeter::diagnose {

// What the allocator held, had taken and had at most held, at one instant. Loops tell it at the end
// of a step, so `allocated` is what outlives the step.
struct AllocatorPoint {
  int64_t t_ns = 0;
  double allocated = model::kAbsentNumber, reserved = model::kAbsentNumber;
  double peak = model::kAbsentNumber;  // since the start, or since the loop reset it
  double x = 0;                        // steps that had ended
  size_t step = 0;                     // index + 1 in RankFacts::steps of the last of them; 0: none
  bool steady = false;                 // after warm-up, in no phase of its own
};

// In the order of time; empty without a series allocated_bytes. All samples of a short run, four a
// bucket of a long one, its lowest and highest among them.
std::vector<AllocatorPoint> AllocatorPoints(const Facts& facts, const RankFacts& rank);

// What the allocator holds, where the steps are steady; all of it without steps but for the first
// fifth. `x` counts steps, or seconds without any.
std::vector<LevelPoint> HeldPoints(const RankFacts& rank, std::span<const AllocatorPoint> points);

// Samples of any series over the steady steps of the rank, with steps as `x`; over the last four
// fifths of its training, with seconds, when it has no steps.
std::vector<LevelPoint> LevelPoints(const RankFacts& rank, const model::Curve& curve);

// The most that a step takes beyond what outlives it: how far the peak rose above what was held
// before. Nothing when nobody tells a peak.
std::optional<double> StepNeed(std::span<const AllocatorPoint> points);

// Of the allocator's first device; nothing when the rank's GPUs are not known.
std::optional<int32_t> AllocatorGpu(const Facts& facts, const RankFacts& rank);

struct DeviceRoom {
  double limit_bytes = 0;            // total less what the driver keeps
  std::optional<double> used_bytes;  // of all processes, when last read
};
std::optional<DeviceRoom> RoomOf(const Facts& facts, int32_t gpu);

// What the device has in use beside the rank's allocator: contexts, libraries, other processes. The
// median of used less reserved where both were read while neither grew; nothing without those.
std::optional<double> BesideAllocator(const Facts& facts, const RankFacts& rank, int32_t gpu);

// The last sample of a curve; nothing without one.
std::optional<double> LastOf(const model::Curve* curve);
// The highest sample; nothing without one.
std::optional<double> HighestOf(const model::Curve* curve);

// Number of the step as the training counts it; its place when it has none.
int64_t StepNumber(const TrainStep& step, size_t place);
// Steps of a whole epoch, the median; nothing when no epoch was completed.
std::optional<double> StepsAnEpoch(const RankFacts& rank);
// "80.1 MB an epoch (80.0 MB to 80.2 MB)": the slope of a trend over `units` of x, `per` says
// which. Without the interval where it reads the same.
model::Message SayRate(const Trend& trend, double units, const model::Message& per);
// Where more than eight ranks have the same, the worst of them by this figure of its first evidence
// stands for all and says how many there are.
void FoldRanks(std::string_view figure, std::vector<model::Finding>* findings);

}  // namespace epochmeter::diagnose
