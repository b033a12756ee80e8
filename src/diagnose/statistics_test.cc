// SPDX-License-Identifier: Apache-2.0
#include "diagnose/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace epochmeter::diagnose {
namespace {

using model::Interval;
using model::SeriesColumn;

constexpr int64_t kSecond = base::kNsPerSecond;

SeriesColumn Column(const std::vector<std::pair<double, double>>& samples) {
  SeriesColumn column;
  for (const auto& [t_s, value] : samples) {
    column.t_ns.push_back(std::llround(t_s * 1e9));
    column.value.push_back(value);
  }
  return column;
}

Interval Between(double begin_s, double end_s) {
  return {.begin_ns = std::llround(begin_s * 1e9), .end_ns = std::llround(end_s * 1e9)};
}

TEST(Percentile, InterpolatesBetweenRanks) {
  const std::vector<double> values = {1, 2, 3, 10};
  EXPECT_EQ(Percentile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Percentile(values, 0.95).value(), 3 + 0.85 * 7);
  EXPECT_EQ(Percentile(values, 1.0), 10);
  EXPECT_FALSE(Percentile({}, 0.5));
}

TEST(StatOf, AgreesWithTheStoreAndTellsCoverage) {
  const SeriesColumn column = Column({{0, 5}, {1, 1}, {2, 3}, {100, 9}, {101, 7}});
  const model::Stat stat = StatOf(column, kSecond, Between(1, 101));
  EXPECT_EQ(stat.count, 4U);
  EXPECT_DOUBLE_EQ(stat.mean.value(), (1 + 3 + 9 + 7) / 4.0);
  EXPECT_EQ(stat.min, 1);
  EXPECT_EQ(stat.max, 9);
  EXPECT_EQ(stat.last, 7);
  EXPECT_EQ(stat.p50, 5);
  EXPECT_DOUBLE_EQ(stat.coverage_ratio.value(), 0.04);
}

TEST(StatOf, IsEmptyWithoutSamples) {
  const model::Stat stat = StatOf(Column({{0, 5}}), kSecond, Between(1, 2));
  EXPECT_EQ(stat.count, 0U);
  EXPECT_FALSE(stat.mean || stat.max || stat.p50 || stat.coverage_ratio);
}

TEST(StatOfValues, LeavesOutNan) {
  const std::vector<double> values = {3, std::nan(""), 1};
  const model::Stat stat = StatOfValues(values);
  EXPECT_EQ(stat.count, 2U);
  EXPECT_EQ(stat.mean, 2);
  EXPECT_EQ(stat.last, 1);
}

TEST(CounterDelta, InterpolatesBothEnds) {
  const SeriesColumn column = Column({{0, 100}, {1, 110}, {2, 130}, {3, 130}});
  EXPECT_DOUBLE_EQ(CounterDelta(column, kSecond, Between(0.5, 1.5)).value(), 5 + 10);
  EXPECT_DOUBLE_EQ(CounterDelta(column, kSecond, Between(0, 3)).value(), 30);
  EXPECT_DOUBLE_EQ(CounterDelta(column, kSecond, Between(1.25, 1.5)).value(), 5);
}

TEST(CounterDelta, IsUnknownWithoutBrackets) {
  const SeriesColumn column = Column({{1, 100}, {2, 110}, {20, 400}, {21, 410}});
  EXPECT_FALSE(CounterDelta(column, kSecond, Between(0.5, 1.5)));  // begins before the first
  EXPECT_FALSE(CounterDelta(column, kSecond, Between(20.5, 22)));  // ends after the last
  EXPECT_FALSE(CounterDelta(column, kSecond, Between(1.5, 10)));   // ends inside a hole
  EXPECT_FALSE(CounterDelta(column, kSecond, Between(10, 20.5)));  // begins inside a hole
  EXPECT_DOUBLE_EQ(CounterDelta(column, kSecond, Between(1, 21)).value(), 310);  // spans it
  // A counter that is read each 10 s may be interpolated over up to a minute.
  EXPECT_DOUBLE_EQ(CounterDelta(column, 10 * kSecond, Between(2, 11)).value(), 145);
  EXPECT_FALSE(CounterDelta({}, kSecond, Between(0, 1)));
}

TEST(CounterDelta, IsUnknownAcrossAResetAndIgnoresJitter) {
  EXPECT_FALSE(
      CounterDelta(Column({{0, 100}, {1, 150}, {2, 10}, {3, 30}}), kSecond, Between(0, 3)));
  EXPECT_DOUBLE_EQ(
      CounterDelta(Column({{0, 100}, {1, 99}, {2, 103}}), kSecond, Between(0, 2)).value(), 4);
  EXPECT_FALSE(CounterDelta(Column({{0, 100}, {50, 1}}), kSecond, Between(0, 50)));
}

TEST(UnsortedMedian, IsThePercentileInTheMiddleToTheLastBit) {
  EXPECT_FALSE(UnsortedMedian({}));
  std::vector<double> values;
  std::vector<double> sorted;
  uint64_t state = 1;
  for (int count = 1; count < 60; ++count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(static_cast<double>(state >> 40) / 7);
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), values.back()), values.back());
    EXPECT_EQ(UnsortedMedian(values), Percentile(sorted, 0.5)) << count;
  }
}

TEST(GrowthOf, AcrossAResetIsTheLeastItCanBe) {
  const SeriesColumn column = Column({{0, 1000}, {1, 1050}, {2, 990}, {3, 1010}});
  const auto growth = [&](double begin_s, double end_s) {
    const auto known = GrowthOf(column, kSecond, Between(begin_s, end_s), Falls::kReset);
    return std::pair(known->value, known->at_least);
  };
  EXPECT_EQ(growth(0, 1), std::pair(50.0, false));
  EXPECT_EQ(growth(2, 3), std::pair(20.0, false));
  EXPECT_EQ(growth(0, 3), std::pair(50.0 + 20, true));
  const auto restarted = GrowthOf(Column({{0, 1000}, {1, 1050}, {2, 9}, {3, 29}}), kSecond,
                                  Between(0, 3), Falls::kReset);
  EXPECT_EQ(restarted->value, 50 + 9 + 20);
  EXPECT_TRUE(restarted->at_least);
  // The reset came somewhere between two readings, perhaps outside of the interval.
  EXPECT_EQ(growth(0, 1.5), std::pair(50.0, true));
  EXPECT_EQ(growth(1.5, 3), std::pair(20.0, true));
  EXPECT_EQ(growth(1.2, 1.8), std::pair(0.0, true));
}

TEST(CountedPart, MovesAnEndIntoTheReadingsWhereItHasNoBracket) {
  const SeriesColumn column = Column({{1, 0}, {2, 5}, {3, 9}, {4, 12}});
  const auto part = [&](double begin_s, double end_s) {
    return CountedPart(column, kSecond, Between(begin_s, end_s));
  };
  EXPECT_EQ(part(1.5, 3.5)->begin_ns, Between(1.5, 3.5).begin_ns);  // both bracketed
  EXPECT_EQ(part(1.5, 3.5)->end_ns, Between(1.5, 3.5).end_ns);
  EXPECT_EQ(part(0.2, 3.5)->begin_ns, kSecond);
  EXPECT_EQ(part(0.2, 3.5)->end_ns, Between(0.2, 3.5).end_ns);
  EXPECT_EQ(part(1.5, 9)->end_ns, 4 * kSecond);
  EXPECT_EQ(part(0.7, 1.5)->begin_ns, kSecond);  // one reading, but more than half is covered
  EXPECT_FALSE(part(0.2, 1.1));                  // one reading, most of it is not covered
  EXPECT_FALSE(part(5, 6));
  EXPECT_FALSE(part(0, 0.5));
}

TEST(SampledPart, EndsAtTheFirstAndLastSample) {
  const SeriesColumn column = Column({{1, 0}, {2, 0}, {5, 0}});
  const auto part = SampledPart(column, Between(0, 3));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->begin_ns, kSecond);
  EXPECT_EQ(part->end_ns, 2 * kSecond);
  EXPECT_FALSE(SampledPart(column, Between(3, 9)));
}

}  // namespace
}  // namespace epochmeter::diagnose
