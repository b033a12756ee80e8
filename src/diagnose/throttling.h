// SPDX-License-Identifier: Apache-2.0
// How much of a GPU's time its clocks were held down, why, and what that cost. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/facts.h"

namespace epochmeter::diagnose {

// Bits of throttle_reasons, as nvmlClocksEventReason names them.
inline constexpr uint64_t kReasonPowerCap = 0x4;
inline constexpr uint64_t kReasonHardware = 0x8;  // heat or power brake; which may be in other bits
inline constexpr uint64_t kReasonSoftwareThermal = 0x20;
inline constexpr uint64_t kReasonHardwareThermal = 0x40;
inline constexpr uint64_t kReasonPowerBrake = 0x80;

// A GPU of the job and the time over which it may be judged: the steady stretches of its rank, of
// all ranks when it is not known whose it is, the whole recording when there are no steps.
struct JudgedGpu {
  int32_t gpu = -1;
  const model::EntityDef* entity = nullptr;
  std::vector<model::Interval> intervals;  // may be many
  bool steady = false;                     // they are of steady steps
  double seconds = 0;

  model::Interval Span() const;  // from the first begin to the last end
};
// In the order of their indexes, those with any series only.
std::vector<JudgedGpu> JudgedGpus(const Facts& facts);

// Part of the time of the gpu's intervals, 0..1.
struct Held {
  double ratio = 0;
  std::string series;  // that says so
};
// By the driver's counter of seconds ("throttle_thermal_s"; empty: none) and by the samples of the
// reason mask in which any of `bits` is set, whichever is more. Nothing when neither was recorded.
std::optional<Held> HeldDown(const Facts& facts, const JudgedGpu& gpu,
                             std::string_view counter_field, uint64_t bits);

struct Clocks {
  std::optional<double> mean_hz, max_hz;  // over the intervals; the highest that the GPU can have
  // Part of the highest clock that it had not, 0 when not known.
  double LostRatio() const;
};
Clocks ClocksOf(const Facts& facts, const JudgedGpu& gpu);

// Highest value of a figure in the intervals, or of all the run when it was read too rarely for
// them (limits, link speeds); nothing without a sample.
std::optional<double> HighestOf(const Facts& facts, const JudgedGpu& gpu, std::string_view field);

// "gpu3", or "8 GPUs, worst gpu3" for several.
model::Message SayGpus(size_t count, int32_t worst);

}  // namespace epochmeter::diagnose
