// SPDX-License-Identifier: Apache-2.0
#include "diagnose/activity.h"

#include <gtest/gtest.h>

#include <limits>

#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::diagnose {
namespace {

using model::Interval;

constexpr int64_t kS = 1'000'000'000;

std::vector<std::pair<int64_t, int64_t>> Pairs(const std::vector<Interval>& intervals) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const Interval& interval : intervals) {
    pairs.emplace_back(interval.begin_ns, interval.end_ns);
  }
  return pairs;
}
using P = std::vector<std::pair<int64_t, int64_t>>;

TEST(Intervals, JoinSortsBridgesAndDropsThoseThatEndBeforeTheyBegin) {
  EXPECT_EQ(Pairs(Join({{20, 30}, {0, 10}, {12, 15}, {9, 3}})), (P{{0, 10}, {12, 15}, {20, 30}}));
  EXPECT_EQ(Pairs(Join({{20, 30}, {0, 10}, {12, 15}}, 2)), (P{{0, 15}, {20, 30}}));
  EXPECT_TRUE(Join({}).empty());
}

TEST(Intervals, JoinTakesTheEndsOfTheClock) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Pairs(Join({{kMax - 1, kMax}, {kMin, kMin + 1}}, 5)),
            (P{{kMin, kMin + 1}, {kMax - 1, kMax}}));
}

TEST(Intervals, OverlapAndWithoutAreEachOthersRest) {
  const std::vector<Interval> all{{0, 10}, {20, 30}};
  const std::vector<Interval> holes{{5, 22}, {25, 26}};
  EXPECT_EQ(Pairs(Overlap(all, holes)), (P{{5, 10}, {20, 22}, {25, 26}}));
  EXPECT_EQ(Pairs(Without(all, holes)), (P{{0, 5}, {22, 25}, {26, 30}}));
  EXPECT_EQ(Pairs(Without(all, {})), Pairs(all));
}

TEST(Intervals, PartsHaveTheSameWallTimeAndHoldWhatLiesInThem) {
  const std::vector<Interval> all{{0, 10}, {30, 40}};
  const auto parts = Parts(all, 4);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(Pairs(parts[0]), (P{{0, 10}}));
  EXPECT_TRUE(parts[1].empty());
  EXPECT_EQ(Pairs(parts[3]), (P{{30, 40}}));
  EXPECT_EQ(Parts({}, 3).size(), 3U);
}

TEST(Stretches, EndAtHolesAndAtWork) {
  model::Curve curve;
  curve.exact = true;
  curve.points = {.t_ns = {0, kS, 2 * kS, 3 * kS, 4 * kS, 9 * kS},
                  .value = {0, 0, 0.5, 0, 0, model::kAbsentNumber}};
  EXPECT_EQ(Pairs(StretchesAtMost(curve, 0.01, 1)), (P{{0, kS}, {3 * kS, 4 * kS}}));
  EXPECT_TRUE(StretchesAtMost(curve, 0.01, 2).empty());
  EXPECT_TRUE(StretchesAtMost(model::Curve{}, 0.01, 0).empty());
}

TEST(Stretches, OfAThinnedCurveAreOfWholeBuckets) {
  model::Curve curve;
  curve.bucket_ns = kS;
  curve.buckets.resize(4);
  for (const size_t i : {0U, 1U, 3U}) curve.buckets[i].Add(0, i == 3 ? 0.2 : 0, 1);
  EXPECT_EQ(Pairs(StretchesAtMost(curve, 0.01, 2)), (P{{0, 2 * kS}}));
}

TEST(IdleStretches, NeedRestOfTheMultiprocessorsToo) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0);
  run.Constant(run.Gpu(0), model::gpu::kSmActive, 1, 0.4);
  const Facts& facts = run.Finish();
  EXPECT_TRUE(IdleStretches(facts, 0, 0.01, 5).value().empty());
  EXPECT_FALSE(IdleStretches(facts, 1, 0.01, 5));
}

TEST(Activity, MeansAreOfTheIntervalsAskedFor) {
  TestRun run(60);
  run.Series(run.Gpu(0), model::gpu::kUtilization, 1, [](double t) { return t < 30 ? 0.2 : 0.8; });
  const Facts& facts = run.Finish();
  const std::vector<Interval> late{{40 * kS, 50 * kS}};
  EXPECT_NEAR(MeanOver(facts, 0, "utilization_ratio", late).value(), 0.8, 1e-9);
  EXPECT_FALSE(MeanOver(facts, 0, "utilization_ratio", {}));
  EXPECT_FALSE(MeanOver(facts, 0, "power_w", late));
  EXPECT_FALSE(MeanOver(facts, 5, "utilization_ratio", late));
}

TEST(Activity, WaitingAndMedianLeaveWarmUpOut) {
  TestRun run(60);
  run.Train({.duration_s = [](int step) { return step < 100 ? 0.2 : 0.1; },
             .data_wait_s = [](int step) { return step < 100 ? 0.2 : 0.02; }});
  const Facts& facts = run.Finish();
  EXPECT_NEAR(MedianStepSeconds(facts.ranks().at(0)).value(), 0.1, 1e-6);
  EXPECT_NEAR(WorstDataWaitRatio(facts), 0.2, 1e-6);
}

TEST(Activity, OfNothingIsNothing) {
  TestRun run(10);
  const Facts& facts = run.Finish();
  EXPECT_TRUE(SteadyOfAll(facts).empty());
  EXPECT_TRUE(GpusOfJob(facts).empty());
  EXPECT_EQ(WorstDataWaitRatio(facts), 0);
}

}  // namespace
}  // namespace epochmeter::diagnose
