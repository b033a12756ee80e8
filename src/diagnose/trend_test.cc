// SPDX-License-Identifier: Apache-2.0
#include "diagnose/trend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/test_levels.h"

namespace epochmeter::diagnose {
namespace {

template <typename Value>
std::vector<LevelPoint> Points(size_t count, Value value) {
  std::vector<LevelPoint> points;
  for (size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    points.push_back({.t_ns = static_cast<int64_t>(i) * 1000, .x = x, .value = value(x)});
  }
  return points;
}

template <typename Value>
TrendKind KindOf(size_t count, Value value) {
  return JudgeFloors(FloorsOf(Points(count, value)), 0, {}).kind;
}

TEST(Trend, AStraightRiseGrowsByExactlyItsSlope) {
  const Trend trend =
      JudgeFloors(FloorsOf(Points(600, [](double x) { return 1e9 + 400'384 * x; })), 0, {});
  ASSERT_EQ(trend.kind, TrendKind::kGrows);
  EXPECT_NEAR(trend.slope, 400'384, 1e-3);
  EXPECT_NEAR(trend.slope_low, 400'384, 1e-3);
  EXPECT_NEAR(trend.slope_high, 400'384, 1e-3);
  EXPECT_NEAR(trend.at_value, 1e9 + 400'384 * trend.at_x, 1);
}

TEST(Trend, TheIntervalHoldsTheSlopeOfANoisyRise) {
  const Trend trend = JudgeFloors(
      FloorsOf(Points(600, [](double x) { return 1e6 + 100 * x + 3000 * std::sin(x * x); })), 0,
      {});
  ASSERT_EQ(trend.kind, TrendKind::kGrows);
  EXPECT_LT(trend.slope_low, 100);
  EXPECT_GT(trend.slope_high, 100);
  EXPECT_LT(trend.slope_low, trend.slope);
}

TEST(Trend, TellsWhyARiseIsNoLeak) {
  EXPECT_EQ(KindOf(600, [](double) { return 5e9; }), TrendKind::kFlat);
  EXPECT_EQ(KindOf(600, [](double x) { return 9e9 - 1e6 * x; }), TrendKind::kFlat);
  EXPECT_EQ(KindOf(600, [](double x) { return x < 250 ? 1e9 : 4e9; }), TrendKind::kJump);
  EXPECT_EQ(KindOf(600, [](double x) { return 1e9 * (2 - std::exp(-x / 150)); }),
            TrendKind::kPlateau);
  EXPECT_EQ(KindOf(600, [](double x) { return 1e9 + 1e6 * std::fmod(x, 290) + 1e5 * x; }),
            TrendKind::kUnsteady);
}

TEST(Trend, ASawToothHidesNoLeakBelowIt) {
  EXPECT_EQ(KindOf(600, [](double x) { return 1e9 + 1e7 * std::fmod(x, 7) + 1e6 * x; }),
            TrendKind::kGrows);
}

TEST(Trend, GrowthBelowTheLeastIsFlat) {
  const auto floors = FloorsOf(Points(600, [](double x) { return 1e6 + 1e3 * x; }));
  EXPECT_EQ(JudgeFloors(floors, 1e6, {}).kind, TrendKind::kFlat);
  EXPECT_EQ(JudgeFloors(floors, 1e5, {}).kind, TrendKind::kGrows);
}

TEST(Trend, TooFewOrBadSamplesGiveNoVerdict) {
  EXPECT_EQ(KindOf(kFewestTrendSamples - 1, [](double x) { return x; }), TrendKind::kTooShort);
  EXPECT_EQ(KindOf(600, [](double x) { return x < 300 ? x : NAN; }), TrendKind::kTooShort);
  EXPECT_EQ(KindOf(0, [](double x) { return x; }), TrendKind::kTooShort);
}

TEST(Trend, SamplesAtOneInstantHaveNoSlope) {
  std::vector<LevelPoint> points = Points(100, [](double x) { return 1e6 * x; });
  for (LevelPoint& point : points) point.x = 7;
  EXPECT_EQ(JudgeFloors(FloorsOf(points), 0, {}).kind, TrendKind::kFlat);
}

TEST(Trend, EpochsOfALongTrainingAreJoined) {
  std::vector<Floor> epochs;
  for (int i = 0; i < 300; ++i) {
    const double x = i;
    epochs.push_back({.lowest = {.t_ns = i, .x = x, .value = 1e9 + 1e6 * x}, .samples = 1});
  }
  const std::vector<Floor> joined = JoinFloors(epochs);
  ASSERT_EQ(joined.size(), kFloors);
  EXPECT_EQ(joined.front().samples, 37U);
  EXPECT_EQ(JudgeFloors(joined, 0, {}).kind, TrendKind::kGrows);
}

// The table of docs/diagnosis.md holds: leaks are found, and what is none raises no alarm.
TEST(Trend, FindsLeaksAndRaisesNoFalseAlarm) {
  constexpr uint32_t kEach = 200;
  for (const LevelDef& def : LevelDefs()) {
    int flagged = 0;
    for (uint32_t seed = 0; seed < kEach; ++seed) {
      flagged += JudgeLevel(MakeLevel(def.kind, seed)).grows() ? 1 : 0;
    }
    const double share = 1.0 * flagged / kEach;
    EXPECT_GE(share, def.leaks ? 0.95 : 0.0) << def.name;
    EXPECT_LE(share, def.leaks ? 1.0 : 0.01) << def.name;
  }
}

// The ends of five to seven epochs, one sample each. A saw-tooth of nearly the length of an epoch
// looks like a line there.
TEST(Trend, AFewEpochEndsRaiseNoFalseAlarm) {
  constexpr uint32_t kEach = 400;
  for (const size_t ends : {5U, 6U, 7U}) {
    for (const LevelDef& def : LevelDefs()) {
      const bool slow = def.kind == LevelKind::kSawToothLeak || def.kind == LevelKind::kStairs;
      int flagged = 0;
      for (uint32_t seed = 0; seed < kEach; ++seed) {
        const std::vector<double> level = MakeLevel(def.kind, seed);
        std::vector<Floor> floors;
        for (size_t i = 0; i < ends; ++i) {
          const size_t at = (level.size() - 1) * (i + 1) / ends;
          const auto x = static_cast<double>(i);
          floors.push_back({.lowest = {.t_ns = static_cast<int64_t>(i), .x = x, .value = level[at]},
                            .samples = 1});
        }
        flagged += JudgeFloors(floors, 0, LimitsForFewFloors({})).grows() ? 1 : 0;
      }
      const double share = 1.0 * flagged / kEach;
      if (!slow) {
        EXPECT_GE(share, def.leaks ? 0.85 : 0.0) << def.name << " " << ends;
      }
      const double most = def.kind == LevelKind::kSawTooth ? 0.05 : 0.01;
      EXPECT_LE(share, def.leaks ? 1.0 : most) << def.name << " " << ends;
    }
  }
}

}  // namespace
}  // namespace epochmeter::diagnose
