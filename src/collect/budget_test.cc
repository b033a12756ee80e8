// SPDX-License-Identifier: Apache-2.0
#include "collect/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace epochmeter::collect {
namespace {

using base::kNsPerMs;
using base::kNsPerSecond;
using testing::ElementsAre;

constexpr int64_t kUs = 1000;

Demand Of(int64_t base_s, int64_t longest_s, int64_t cpu_us, bool vital = false) {
  return {.base_ns = base_s * kNsPerSecond,
          .longest_ns = longest_s * kNsPerSecond,
          .vital = vital,
          .cost = {.cpu_ns = cpu_us * kUs, .driver_ns = cpu_us * kUs}};
}

std::vector<int64_t> PlanSeconds(const std::vector<Demand>& demands, BudgetLimits limits) {
  std::vector<int64_t> periods = PlanPeriods(demands, limits);
  for (int64_t& period : periods) {
    if (period != kOff) period /= kNsPerSecond;
  }
  return periods;
}

TEST(PlanPeriods, LeavesEverythingAloneThatFits) {
  EXPECT_THAT(PlanSeconds({Of(1, 60, 1000), Of(10, 60, 9000)}, {.cpu_ratio = 0.002}),
              ElementsAre(1, 10));
}

TEST(PlanPeriods, StretchesTheDearestFirstUntilTheSumFits) {
  // 15.5 + 4.4 + 2.6 ms a second against 3 ms.
  const std::vector<Demand> demands = {Of(1, 30, 15500), Of(1, 30, 4400), Of(10, 60, 26400),
                                       Of(1, 60, 300, true)};
  const std::vector<int64_t> periods = PlanSeconds(demands, {.cpu_ratio = 0.003});
  EXPECT_THAT(periods, ElementsAre(20, 5, 30, 1));
  std::vector<int64_t> periods_ns = PlanPeriods(demands, {.cpu_ratio = 0.003});
  EXPECT_LE(CpuRatioOf(demands, periods_ns), 0.003);
}

TEST(PlanPeriods, NeverGoesBeyondTheLongestUsefulPeriod) {
  EXPECT_THAT(PlanSeconds({Of(1, 5, 100000), Of(1, 30, 100000)}, {.cpu_ratio = 0.001}),
              ElementsAre(5, 30));
}

TEST(PlanPeriods, CountsTheDriversTimeToo) {
  EXPECT_THAT(PlanSeconds({Of(1, 60, 30000)}, {.cpu_ratio = 1, .driver_ratio = 0.01}),
              ElementsAre(5));
}

TEST(PlanPeriods, VitalSourcesKeepTheirPeriodUnlessOneReadingIsTooLong) {
  EXPECT_THAT(PlanSeconds({Of(1, 60, 9000, true), Of(1, 60, 15000, true)}, {.cpu_ratio = 0.001}),
              ElementsAre(1, 2));
}

TEST(PlanPeriods, WhatIsOfNoUseWhenSlowerIsOffWhenItDoesNotFit) {
  const std::vector<Demand> demands = {Of(1, 0, 6000), Of(1, 60, 100)};
  EXPECT_THAT(PlanSeconds(demands, {.cpu_ratio = 0.001}), ElementsAre(kOff, 1));
  EXPECT_THAT(PlanSeconds(demands, {.cpu_ratio = 0.01}), ElementsAre(1, 1));
}

TEST(PlanPeriods, VitalSourcesLeaveHalfOfTheLimitToOthers) {
  EXPECT_THAT(
      PlanSeconds({Of(1, 60, 9000, true), Of(1, 60, 400), Of(1, 60, 1000)}, {.cpu_ratio = 0.001}),
      ElementsAre(1, 2, 5));
}

TEST(PlanPeriods, WhatTakesNextToNothingIsLeftAlone) {
  EXPECT_THAT(
      PlanSeconds({Of(1, 1, 9000), Of(1, 0, 1), Of(1, 60, 1), Of(1, 60, 10)}, {.cpu_ratio = 0.001}),
      ElementsAre(1, 1, 1, 2));
}

TEST(PlanPeriods, WithoutLimitsNothingIsSlower) {
  EXPECT_THAT(PlanSeconds({Of(1, 60, 900000), Of(1, 0, 900000), Of(1, 60, 900000, true)}, {}),
              ElementsAre(1, 1, 1));
}

TEST(CostMeter, TakesTheMedianAndTheLowerOfTwo) {
  CostMeter meter;
  EXPECT_FALSE(meter.Usual());
  meter.Add({.cpu_ns = 90, .driver_ns = 9}, 1, 1);
  meter.Add({.cpu_ns = 10, .driver_ns = 20}, 1, 1);
  EXPECT_EQ(meter.Usual()->cpu_ns, 10);
  EXPECT_EQ(meter.Usual()->driver_ns, 9);
  for (int i = 0; i < 8; ++i) meter.Add({.cpu_ns = i < 4 ? 50 : 60, .driver_ns = 1}, 1, 1);
  EXPECT_EQ(meter.Usual()->cpu_ns, 50);
}

TEST(CostMeter, PartsCountOnceAllWereRead) {
  CostMeter meter;
  for (int i = 0; i < 3; ++i) meter.Add({.cpu_ns = 5, .driver_ns = 7}, 2, 8);
  EXPECT_FALSE(meter.Usual());
  meter.Add({.cpu_ns = 5, .driver_ns = 7}, 2, 8);
  EXPECT_EQ(meter.Usual()->cpu_ns, 20);
  EXPECT_EQ(meter.Usual()->driver_ns, 28);
}

TEST(EpochCredit, IsHalfOfTheTimeAndAMinuteAtMost) {
  EpochCredit credit(0);
  EXPECT_TRUE(credit.Allows(false, 0));
  credit.Spend(70 * kNsPerSecond);
  EXPECT_FALSE(credit.Allows(false, 0));
  EXPECT_TRUE(credit.Allows(true, 0));
  EXPECT_FALSE(credit.Allows(false, 20 * kNsPerSecond));
  EXPECT_TRUE(credit.Allows(false, 21 * kNsPerSecond));
  credit.Spend(80 * kNsPerSecond);
  EXPECT_FALSE(credit.Allows(true, 21 * kNsPerSecond));
}

TEST(EpochCredit, TellsWhatPlansMustLeaveOut) {
  EpochCredit credit(0);
  credit.Spend(2 * kNsPerSecond);
  EXPECT_DOUBLE_EQ(credit.TakeSpentRatio(10 * kNsPerSecond), 0.2);
  EXPECT_DOUBLE_EQ(credit.TakeSpentRatio(20 * kNsPerSecond), 0);
  credit.Spend(20 * kNsPerSecond);
  EXPECT_DOUBLE_EQ(credit.TakeSpentRatio(30 * kNsPerSecond), 0.5);
}

TEST(TimeForNs, IsOfTheScarcerOne) {
  const ReadingCost cost{.cpu_ns = 3 * kNsPerMs, .driver_ns = 20 * kNsPerMs};
  EXPECT_EQ(TimeForNs(cost, {.cpu_ratio = 0.003, .driver_ratio = 0.01}), 2 * kNsPerSecond);
  EXPECT_EQ(TimeForNs(cost, {.cpu_ratio = 0.001, .driver_ratio = 0.01}), 3 * kNsPerSecond);
  EXPECT_EQ(TimeForNs(cost, {}), 0);
}

}  // namespace
}  // namespace epochmeter::collect
