// SPDX-License-Identifier: Apache-2.0
// Steps that needed far more device memory than all before them, by a peak that only rises, read in
// each step or each second. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "diagnose/memory.h"

namespace epochmeter::diagnose {

struct Spike {
  model::Interval interval;    // from the sample before to the one that shows it
  size_t first = 0, last = 0;  // steps it can be: places in RankFacts::steps, the last excluded
  double need_bytes = 0, usual_bytes = 0, peak_bytes = 0;
};

// Jumps of the points' peak after the first steady step, outside phases. `peak` is the curve that
// the points' peaks are of: a thinned one is looked up in the file.
std::vector<Spike> FindSpikes(const Facts& facts, const RankFacts& rank,
                              std::span<const AllocatorPoint> points, const model::Curve& peak);

// The device's memory in use as points: nothing is known to be held, so the highest until then is
// the usual need. Of the job's own processes where the driver tells them; empty when the rank's
// GPUs are not exactly one, or nothing was read.
struct DevicePoints {
  std::vector<AllocatorPoint> points;
  const model::Curve* curve = nullptr;
};
DevicePoints PointsOfDevice(const Facts& facts, const RankFacts& rank);

// Median over the steps outside warm-up; NaN without any.
double MedianDuration(const RankFacts& rank);
// Which of a spike's steps it was: the largest batch where batches differ, else the slowest.
size_t StepOf(const RankFacts& rank, const Spike& spike);
// Whether that step stands out of the spike's steps by its duration or its batch.
bool StandsOut(const RankFacts& rank, const Spike& spike);

}  // namespace epochmeter::diagnose
