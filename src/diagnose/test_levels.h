// SPDX-License-Identifier: Apache-2.0
// Memory levels that are known to leak or not, for the tests and the comparison of leak rules. The
// same seed gives the same levels.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "diagnose/trend.h"

namespace epochmeter::diagnose {

enum class LevelKind : uint8_t {
  kPlateau,       // warm-up that levels off: 2 to 8 GiB, time constant 2 to 17 % of the run
  kStep,          // 4 GiB more from the middle on
  kRandomWalk,    // steps of 0.05 GiB
  kNoise,         // autoregressive, 0.05 GiB
  kSawTooth,      // 2 GiB, period 20 to 200 samples
  kSlowLeak,      // 2 GiB over the run
  kSawToothLeak,  // 5 GiB over the run under a saw-tooth of 2 GiB
  kStairs         // 0.25 GiB each 100 samples
};
struct LevelDef {
  LevelKind kind;
  std::string_view name;
  bool leaks;
};
std::span<const LevelDef> LevelDefs();

inline constexpr size_t kLevelSamples = 1440;  // a day and a sample a minute
inline constexpr double kLevelPeriodS = 57;

// GiB, from 20 on, with noise on top.
std::vector<double> MakeLevel(LevelKind kind, uint32_t seed);

// What our rule says of it: the first fifth is warm-up, the rest is judged.
Trend JudgeLevel(std::span<const double> level, const Limits& limits = {});

}  // namespace epochmeter::diagnose
