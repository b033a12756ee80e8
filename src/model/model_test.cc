// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "model/registry.h"
#include "model/run_builder.h"

namespace epochmeter::model {
namespace {

constexpr MetricDef kPower = Metric({.name = "gpu.power",
                                     .label = "",
                                     .field = "power_w",
                                     .prometheus = "gpu_power_watts",
                                     .unit = "W",
                                     .kind = MetricKind::kGauge,
                                     .scope = Scope::kGpu,
                                     .resolution = 0.1,
                                     .help = "Power.",
                                     .source = "test"});

TEST(Metric, RawValuesReadBackAsTheNearestDouble) {
  EXPECT_EQ(ValueFromRaw(RawFromValue(0.86, 1e-4), 1e-4), 0.86);
  EXPECT_EQ(ValueFromRaw(RawFromValue(446.192, 0.1), 0.1), 446.2);
  EXPECT_EQ(ValueFromRaw(RawFromValue(150754820096.0, 1), 1), 150754820096.0);
  EXPECT_EQ(ValueFromRaw(RawFromValue(0.1234567, 0), 0), 0.1234567);
  EXPECT_EQ(RawFromValue(1e300, 1), INT64_MAX);
}

TEST(Registry, GivesTheSameIdToTheSameThingAndTellsTheSinkOnce) {
  MemorySink sink;
  Registry registry(sink);
  const EntityDef gpu{
      .id = 7, .scope = Scope::kGpu, .name = "GPU-a", .labels = {}, .attributes = {}};
  const EntityId first = registry.AddEntity(gpu);
  EXPECT_EQ(registry.AddEntity(gpu), first);
  const SeriesId series = registry.AddSeries(first, kPower, base::kNsPerSecond);
  EXPECT_EQ(registry.AddSeries(first, kPower, base::kNsPerSecond), series);
  EXPECT_EQ(sink.records.size(), 2U);
}

TEST(RemapSink, KeepsSeriesOverARestartOfTheSender) {
  MemorySink out;
  Registry registry(out);
  registry.AddEntity(
      {.id = 0, .scope = Scope::kHost, .name = "host", .labels = {}, .attributes = {}});
  for (int incarnation = 0; incarnation < 2; ++incarnation) {
    RemapSink remap(registry, out);
    remap.Write(
        EntityDef{.id = 0, .scope = Scope::kGpu, .name = "GPU-a", .labels = {}, .attributes = {}});
    remap.Write(SeriesDef{.id = 0, .entity = 0, .period_ns = 1, .metric = InfoOf(kPower)});
    remap.Write(Samples{.t_ns = incarnation,
                        .values = {{.series = 0, .value = 1.0}, {.series = 9, .value = 2.0}}});
    EXPECT_EQ(remap.unknown_ids(), 1U);
  }
  EXPECT_EQ(registry.all_series().size(), 1U);
  EXPECT_EQ(std::get<Samples>(out.records.back()).values[0].series, 0U);
}

TEST(RunBuilder, MeansAreTimeWeightedAndNeverBridgeAGap) {
  RunBuilder builder;
  builder.Write(
      EntityDef{.id = 0, .scope = Scope::kGpu, .name = "GPU-a", .labels = {}, .attributes = {}});
  builder.Write(
      SeriesDef{.id = 0, .entity = 0, .period_ns = base::kNsPerSecond, .metric = InfoOf(kPower)});
  const auto sample = [&](double t_s, double value) {
    builder.Write(Samples{.t_ns = static_cast<int64_t>(t_s * 1e9),
                          .values = {{.series = 0, .value = value}}});
  };
  sample(0, 100);
  sample(1, 100);
  sample(3, 400);     // stands for two seconds
  sample(1000, 700);  // after a hole: one period
  const model::Run run = builder.Finish();
  const Summary all = run.store->Summarize(0, {}).value();
  EXPECT_EQ(all.count, 4U);
  EXPECT_DOUBLE_EQ(all.Mean().value(), (100 * 1 + 400 * 2 + 700 * 1) / 4.0);
  EXPECT_EQ(all.max, 700);
  EXPECT_FALSE(
      run.store->Summarize(0, {.begin_ns = 5'000'000'000, .end_ns = 6'000'000'000}).value().Mean());
}

TEST(RunBuilder, PutsLateValuesInTheirPlaceAndCountsUndefinedIds) {
  RunBuilder builder;
  builder.Write(SeriesDef{.id = 0, .entity = 0, .period_ns = 0, .metric = InfoOf(kPower)});
  for (const int64_t t : {5, 1, 3}) {
    builder.Write(Samples{
        .t_ns = t,
        .values = {{.series = 0, .value = static_cast<double>(t)}, {.series = 4, .value = 0}}});
  }
  const model::Run run = builder.Finish();
  EXPECT_EQ(run.store->Read(0, {}).value().t_ns, (std::vector<int64_t>{1, 3, 5}));
  ASSERT_EQ(run.losses.size(), 1U);
  EXPECT_EQ(run.losses[0].count, 3U);
}

TEST(StepTable, FillsMissingNumbersWithNan) {
  StepTable table;
  table.Add({.t_ns = 1,
             .kind = EventKind::kStep,
             .rank = {},
             .epoch = 0,
             .step = 1,
             .name = "",
             .fields = {{"duration_s", 0.5}}});
  table.Add({.t_ns = 2,
             .kind = EventKind::kStep,
             .rank = {},
             .epoch = 0,
             .step = 2,
             .name = "",
             .fields = {{"scalar.loss", int64_t{3}}}});
  table.Add({.t_ns = 3,
             .kind = EventKind::kStep,
             .rank = {},
             .epoch = 0,
             .step = 3,
             .name = "",
             .fields = {{"scalar.loss", std::nan("")}}});
  EXPECT_TRUE(IsAbsent(table.Column("duration_s")->at(1)));
  EXPECT_TRUE(IsAbsent(table.Column("scalar.loss")->at(0)));
  EXPECT_TRUE(std::isnan(table.Column("scalar.loss")->at(2)));
  EXPECT_FALSE(IsAbsent(table.Column("scalar.loss")->at(2)));
  EXPECT_EQ(table.Column("scalar.loss")->at(1), 3.0);
  EXPECT_EQ(table.Column("none"), nullptr);
}

TEST(RunWallTime, UsesTheAnchorBefore) {
  model::Run run;
  EXPECT_FALSE(run.WallNs(5));
  run.info = RunInfo{.run_id = "r",
                     .boot_id = "",
                     .anchor = {.mono_ns = 100, .boot_ns = 0, .wall_ns = 1000},
                     .attributes = {}};
  run.anchors.push_back({.clocks = {.mono_ns = 200, .boot_ns = 0, .wall_ns = 5000}});
  EXPECT_EQ(run.WallNs(150), 1050);
  EXPECT_EQ(run.WallNs(250), 5050);
}

TEST(RunBuilder, CountsRecordsWhoseTimeNoClockCanShow) {
  RunBuilder builder;
  builder.Write(EntityDef{.id = 0, .scope = Scope::kHost, .name = "host"});
  builder.Write(SeriesDef{.id = 0, .period_ns = INT64_MAX});
  builder.Write(SeriesDef{.id = 0, .period_ns = 5});
  for (const int64_t t_ns : {INT64_MIN, int64_t{7}, INT64_MAX}) {
    builder.Write(Samples{.t_ns = t_ns, .values = {{.series = 0, .value = 1}}});
    builder.Write(Event{.t_ns = t_ns, .kind = EventKind::kStep, .name = {}, .fields = {}});
  }
  builder.Write(Anchor{.clocks = {.mono_ns = 1, .boot_ns = 1, .wall_ns = INT64_MAX}});
  builder.Write(Loss{.t_ns = INT64_MIN, .kind = "some.loss", .detail = {}, .help = {}});
  const model::Run run = builder.Finish();
  EXPECT_EQ(run.span.begin_ns, 7);
  EXPECT_EQ(run.span.end_ns, 7);
  EXPECT_TRUE(run.anchors.empty());
  ASSERT_EQ(run.losses.size(), 2U);
  EXPECT_EQ(run.losses[0].kind, "some.loss");
  EXPECT_EQ(run.losses[1].kind, "run.impossible_times");
  EXPECT_EQ(run.losses[1].count, 6U);
}

}  // namespace
}  // namespace epochmeter::model
