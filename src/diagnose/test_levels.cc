// SPDX-License-Identifier: Apache-2.0
#include "diagnose/test_levels.h"

#include <array>
#include <cmath>

namespace epochmeter::diagnose {
namespace {

// splitmix64, and a normal number by Box and Muller: the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  double Uniform(double low, double high) { return low + (high - low) * Unit(); }
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Unit()));
    return radius * std::cos(6.283185307179586 * Unit());
  }

 private:
  double Unit() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
  }
  uint64_t state_;
};

constexpr double kBaseGiB = 20, kNoiseGiB = 0.05;
constexpr double kGiB = 1073741824.0;

constexpr auto kDefs = std::to_array<LevelDef>({
    {LevelKind::kPlateau, "warm-up plateau", false},
    {LevelKind::kStep, "one step up", false},
    {LevelKind::kRandomWalk, "random walk", false},
    {LevelKind::kNoise, "noise", false},
    {LevelKind::kSawTooth, "saw-tooth", false},
    {LevelKind::kSlowLeak, "leak +2 GiB", true},
    {LevelKind::kSawToothLeak, "leak under saw-tooth", true},
    {LevelKind::kStairs, "leak in stairs", true},
});

}  // namespace

std::span<const LevelDef> LevelDefs() { return kDefs; }

std::vector<double> MakeLevel(LevelKind kind, uint32_t seed) {
  Random random(uint64_t{seed} * 1000 + static_cast<uint64_t>(kind));
  const auto length = static_cast<double>(kLevelSamples);
  const double rise = random.Uniform(2, 8), constant = random.Uniform(0.02, 0.17) * length;
  const double period = random.Uniform(20, 200), shift = random.Uniform(0, 1);
  std::vector<double> level;
  double noise = 0, walk = 0;
  for (size_t i = 0; i < kLevelSamples; ++i) {
    const auto at = static_cast<double>(i);
    const double part = at / length;
    const double tooth = 2 * std::fmod(at / period + shift, 1.0);
    noise = 0.7 * noise + kNoiseGiB * std::sqrt(1 - 0.49) * random.Normal();
    walk += kNoiseGiB * random.Normal();
    double value = kBaseGiB + noise;
    if (kind == LevelKind::kPlateau) value += rise * (1 - std::exp(-at / constant));
    if (kind == LevelKind::kStep && i >= kLevelSamples / 2) value += 4;
    if (kind == LevelKind::kRandomWalk) value += walk;
    if (kind == LevelKind::kSawTooth) value += tooth;
    if (kind == LevelKind::kSlowLeak) value += 2 * part;
    if (kind == LevelKind::kSawToothLeak) value += 5 * part + tooth;
    if (kind == LevelKind::kStairs) value += 0.25 * std::floor(at / 100);
    level.push_back(value);
  }
  return level;
}

Trend JudgeLevel(std::span<const double> level, const Limits& limits) {
  std::vector<LevelPoint> points;
  for (size_t i = level.size() / 5; i < level.size(); ++i) {
    const double t_s = kLevelPeriodS * static_cast<double>(i);
    points.push_back({.t_ns = std::llround(t_s * 1e9), .x = t_s, .value = level[i] * kGiB});
  }
  return JudgeFloors(FloorsOf(points), 0, limits);
}

}  // namespace epochmeter::diagnose
