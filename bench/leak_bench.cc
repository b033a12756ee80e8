// SPDX-License-Identifier: Apache-2.0
// Leak rules side by side: the share of synthetic memory levels that each flags, ours and those of
// other tools as they are documented. Prints the table of docs/diagnosis.md; the same every time.
//
// Levels come from src/diagnose/test_levels.h: 1440 samples of 57 s, 20 GiB and up, of a device of
// 40 GiB. Runs in about half a minute.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "diagnose/test_levels.h"

namespace {

using epochmeter::diagnose::JudgeLevel;
using epochmeter::diagnose::kLevelPeriodS;
using epochmeter::diagnose::LevelDefs;
using epochmeter::diagnose::MakeLevel;
using Level = std::span<const double>;

constexpr uint32_t kEach = 100;
constexpr double kDeviceGiB = 40;

// SageMaker Debugger's GPUMemoryIncrease: a moving average of 10 samples that is 5 percentage
// points of the device above the one before it, after `patience` samples.
bool MovingAverage(Level level, size_t patience) {
  constexpr size_t kWindow = 10;
  for (size_t end = std::max(patience, 2 * kWindow); end <= level.size(); ++end) {
    double now = 0, before = 0;
    for (size_t i = 0; i < kWindow; ++i) {
      now += level[end - 1 - i];
      before += level[end - 1 - kWindow - i];
    }
    if ((now - before) / kWindow >= 0.05 * kDeviceGiB) return true;
  }
  return false;
}
bool SageMaker(Level level) { return MovingAverage(level, 1000); }
bool SageMakerAtOnce(Level level) { return MovingAverage(level, 0); }

// Mann and Kendall: rising at p < 0.05, without ties as noise leaves none.
bool MannKendall(Level level) {
  int64_t s = 0;
  for (size_t i = 0; i < level.size(); ++i) {
    for (size_t j = i + 1; j < level.size(); ++j) s += level[j] > level[i] ? 1 : -1;
  }
  const auto n = static_cast<double>(level.size());
  const double deviation = std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
  return static_cast<double>(s - 1) / deviation > 1.645;
}

bool MannKendallAndSen(Level level) {
  if (!MannKendall(level)) return false;
  std::vector<double> slopes;
  for (size_t i = 0; i < level.size(); ++i) {
    for (size_t j = i + 1; j < level.size(); ++j) {
      slopes.push_back((level[j] - level[i]) / static_cast<double>(j - i));
    }
  }
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return *middle * static_cast<double>(level.size()) >= 0.05 * level.front();
}

struct Line {
  double slope = 0, offset = 0;  // a sample, and at the first one
};
Line LeastSquares(Level level) {
  const auto n = static_cast<double>(level.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < level.size(); ++i) {
    const auto at = static_cast<double>(i);
    x += at;
    y += level[i];
    xx += at * at;
    xy += at * level[i];
  }
  const double slope = (n * xy - x * y) / (n * xx - x * x);
  return {.slope = slope, .offset = (y - slope * x) / n};
}
bool LeastSquaresGrowth(Level level) {
  const Line line = LeastSquares(level);
  return line.slope * static_cast<double>(level.size()) >= 0.05 * line.offset;
}
// JDK Mission Control's live set: 0.01 % a second.
bool MissionControl(Level level) {
  const Line line = LeastSquares(level);
  return line.slope / kLevelPeriodS >= 1e-4 * line.offset;
}

// Floors of six windows after the first fifth: not falling by more than 0.1 %, four rises above
// 0.2 %, and 5 % in all.
bool SixFloors(Level level) {
  constexpr size_t kWindows = 6;
  const Level judged = level.subspan(level.size() / 5);
  std::array<double, kWindows> floors{};
  for (size_t w = 0; w < kWindows; ++w) {
    const Level window = judged.subspan(judged.size() * w / kWindows, judged.size() / kWindows);
    floors.at(w) = *std::min_element(window.begin(), window.end());
  }
  int rises = 0;
  for (size_t w = 1; w < kWindows; ++w) {
    if (floors.at(w) < floors.at(w - 1) * 0.999) return false;
    rises += floors.at(w) > floors.at(w - 1) * 1.002 ? 1 : 0;
  }
  return rises >= 4 && floors.back() >= 1.05 * floors.front();
}

bool Ours(Level level) { return JudgeLevel(level).grows(); }

struct Rival {
  std::string_view name;
  bool (*flags)(Level level);
};
constexpr auto kRivals = std::to_array<Rival>({
    {"SageMaker GPUMemoryIncrease, patience 1000", SageMaker},
    {"SageMaker GPUMemoryIncrease, no patience", SageMakerAtOnce},
    {"Mann-Kendall, p < 0.05", MannKendall},
    {"Mann-Kendall and Sen growth >= 5 %", MannKendallAndSen},
    {"least squares growth >= 5 %", LeastSquaresGrowth},
    {"JDK Mission Control, 0.01 %/s", MissionControl},
    {"six floors, 5 % growth", SixFloors},
    {"epochmeter gpu_memory_leak", Ours},
});

}  // namespace

int main() {
  fmt::print("| rule |");
  for (const auto& def : LevelDefs()) fmt::print(" {} |", def.name);
  fmt::print("\n|---|");
  for (size_t i = 0; i < LevelDefs().size(); ++i) fmt::print("---|");
  fmt::print("\n");
  for (const Rival& rival : kRivals) {
    fmt::print("| {} |", rival.name);
    for (const auto& def : LevelDefs()) {
      uint32_t flagged = 0;
      for (uint32_t seed = 0; seed < kEach; ++seed) {
        flagged += rival.flags(MakeLevel(def.kind, seed)) ? 1 : 0;
      }
      fmt::print(" {} % |", 100 * flagged / kEach);
    }
    fmt::print("\n");
  }
  return 0;
}
