// SPDX-License-Identifier: Apache-2.0
#include "diagnose/curves.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"

namespace epochmeter::diagnose {
namespace {

constexpr int64_t kSecond = base::kNsPerSecond;

model::SeriesColumn Flat(int64_t seconds, double value) {
  model::SeriesColumn column;
  for (int64_t t_s = 0; t_s < seconds; ++t_s) {
    column.t_ns.push_back(t_s * kSecond);
    column.value.push_back(value);
  }
  return column;
}

TEST(Curve, KeepsEverySampleOfAShortSeries) {
  const model::SeriesColumn column = Flat(100, 1);
  model::Curve curve{.period_ns = kSecond};
  FillCurve(column, {.begin_ns = 0, .end_ns = 99 * kSecond}, &curve);
  EXPECT_TRUE(curve.exact);
  EXPECT_EQ(curve.points.t_ns, column.t_ns);
}

TEST(Curve, KeepsASpikeOfOneSampleAmongMany) {
  model::SeriesColumn column = Flat(86400, 1);
  column.value[43210] = 7;
  column.value[43220] = -7;
  model::Curve curve{.period_ns = kSecond};
  FillCurve(column, {.begin_ns = 0, .end_ns = 86399 * kSecond}, &curve);
  EXPECT_FALSE(curve.exact);
  EXPECT_LE(curve.points.t_ns.size(), 4U * model::kCurveBuckets);
  EXPECT_EQ(*std::max_element(curve.points.value.begin(), curve.points.value.end()), 7);
  EXPECT_EQ(*std::min_element(curve.points.value.begin(), curve.points.value.end()), -7);
  EXPECT_TRUE(std::is_sorted(curve.points.t_ns.begin(), curve.points.t_ns.end()));
  uint64_t samples = 0;
  for (const model::Summary& bucket : curve.buckets) samples += bucket.count;
  EXPECT_EQ(samples, 86400U);
}

TEST(Curve, MarksWhereAHoleBegins) {
  model::SeriesColumn column = Flat(10, 1);
  column.t_ns.push_back(100 * kSecond);
  column.value.push_back(2);
  model::Curve curve{.period_ns = kSecond};
  FillCurve(column, {.begin_ns = 0, .end_ns = 100 * kSecond}, &curve);
  ASSERT_EQ(curve.points.value.size(), 12U);
  EXPECT_TRUE(model::IsAbsent(curve.points.value[10]));
  EXPECT_EQ(curve.points.t_ns[10], 9 * kSecond + 1);
}

TEST(Curve, NamesRates) {
  EXPECT_EQ(RateField("read_bytes"), "read_bytes_per_s");
  EXPECT_EQ(RateField("throttle_thermal_s"), "throttle_thermal_ratio");
  EXPECT_EQ(RateField("cpu_user_s"), "cpu_user_cores");
  EXPECT_EQ(RateField("cpu_s"), "cpu_cores");
}

}  // namespace
}  // namespace epochmeter::diagnose
