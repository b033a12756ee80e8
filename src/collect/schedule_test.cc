// SPDX-License-Identifier: Apache-2.0
#include "collect/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "collect/source_test_util.h"

namespace epochmeter::collect {
namespace {

using base::kNsPerMs;
using base::kNsPerSecond;

int64_t clock_ns = 0;  // hand-ticked
int64_t ClockNs() { return clock_ns; }
int64_t spent_ns = 0;  // CPU time of the readings, which is all that the process takes
int64_t SpentNs() { return spent_ns; }

constexpr std::array<model::MetricDef, 2> kFakeMetrics = {
    model::Metric({"fake.one", "", "one", "fake_one", "1", model::MetricKind::kGauge,
                   model::Scope::kHost, 1, "First.", "test"}),
    model::Metric({"fake.two", "", "two", "fake_two", "1", model::MetricKind::kGauge,
                   model::Scope::kHost, 1, "Second.", "test"})};

// How the fake sources behave; reset by each test.
struct Script {
  bool make_fails = false;
  std::string sample_error;
  int64_t cost_ns = 0;
  double value = 1;
  bool with_second = true;
  int made = 0;
  size_t parts = 0;
  std::vector<int64_t> read_at_ns;
  std::vector<std::vector<size_t>> parts_read;  // at each of these
};
Script script;

class FakeSource : public Source {
 public:
  explicit FakeSource(const SourceContext& context) {
    const model::EntityId host = context.registry.AddEntity(
        {.id = 0, .scope = model::Scope::kHost, .name = "host", .labels = {}, .attributes = {}});
    for (size_t i = 0; i < 2; ++i) {
      series_[i] = context.registry.AddSeries(host, kFakeMetrics[i], context.tick_ns);
    }
  }
  size_t parts() const override { return script.parts; }
  base::Result<> Sample(model::Samples& out) override { return SampleTurn(out, {}); }
  base::Result<> SampleTurn(model::Samples& out, const Turn& turn) override {
    script.read_at_ns.push_back(clock_ns);
    std::vector<size_t>& parts = script.parts_read.emplace_back();
    for (size_t part = 0; part < script.parts; ++part) {
      if (turn.Has(part)) parts.push_back(part);
    }
    const size_t whole = std::max<size_t>(1, script.parts);
    const size_t now = script.parts == 0 ? 1 : parts.size();
    const int64_t cost_ns =
        script.cost_ns * static_cast<int64_t>(now) / static_cast<int64_t>(whole);
    clock_ns += cost_ns;
    spent_ns += cost_ns;
    out.values.push_back({.series = series_[0], .value = script.value});
    if (!script.sample_error.empty()) {
      return base::Error{.what = script.sample_error, .where = "", .why = "", .what_to_do = ""};
    }
    if (script.with_second) out.values.push_back({.series = series_[1], .value = 2});
    return {};
  }

 private:
  std::array<model::SeriesId, 2> series_{};
};

base::Result<std::unique_ptr<Source>> MakeFake(const SourceContext& context) {
  ++script.made;
  if (script.make_fails) {
    return base::Error{.what = "no such device", .where = "", .why = "", .what_to_do = ""};
  }
  return std::unique_ptr<Source>(std::make_unique<FakeSource>(context));
}

constexpr SourceDef FakeDef(Tier tier) {
  return {.name = "fake", .summary = "", .metrics = kFakeMetrics, .tier = tier, .Make = &MakeFake};
}

class ScheduleTest : public testing::Test {
 protected:
  void Start(Tier tier = Tier::kTick, int64_t begin_ns = 10'300 * kNsPerMs, bool at_epochs = true) {
    clock_ns = begin_ns;
    bench_.env.monotonic_ns = &ClockNs;
    bench_.env.thread_cpu_ns = &SpentNs;
    bench_.env.process_cpu_ns = &SpentNs;
    defs_ = {FakeDef(tier)};
    defs_[0].at_epochs = at_epochs;
    defs_[0].vital = vital_;
    defs_[0].longest_ns = longest_ns_;
    SourceContext context = bench_.context();
    context.cpu_ratio = cpu_ratio_;
    schedule_ = Schedule::Make(context, defs_, "recorder");
  }
  // Before Start.
  void SetBudget(double cpu_ratio, bool vital = false) {
    cpu_ratio_ = cpu_ratio;
    vital_ = vital;
  }
  void SetUp() override { script = {}; }

  // Runs all that is due until then, each at its instant.
  void RunUntil(int64_t end_ns) {
    while (schedule_->NextDueNs() <= end_ns) {
      clock_ns = std::max(clock_ns, schedule_->NextDueNs());
      schedule_->RunDue(clock_ns);
    }
    clock_ns = std::max(clock_ns, end_ns);
  }
  template <typename T>
  std::vector<T> Records() const {
    std::vector<T> found;
    for (const model::Record& record : bench_.sink.records) {
      if (const auto* typed = std::get_if<T>(&record)) found.push_back(*typed);
    }
    return found;
  }
  std::vector<std::string> Events() const {
    std::vector<std::string> states;
    for (const auto& event : Records<model::Event>()) {
      states.emplace_back(event.Text("state").value_or("?"));
    }
    return states;
  }
  std::optional<double> Value(const model::Samples& samples, const std::string& field) const {
    for (const auto& value : samples.values) {
      if (bench_.registry.series(value.series).metric.field == field) return value.value;
    }
    return std::nullopt;
  }
  std::vector<int64_t> ReadAtMs() const {
    std::vector<int64_t> ms;
    for (const int64_t t : script.read_at_ns) ms.push_back(t / kNsPerMs);
    return ms;
  }

  SourceBench bench_{"/nowhere"};
  double cpu_ratio_ = std::numeric_limits<double>::infinity();
  bool vital_ = false;
  int64_t longest_ns_ = 60 * kNsPerSecond;
  std::vector<SourceDef> defs_;
  std::unique_ptr<Schedule> schedule_;
};

TEST_F(ScheduleTest, ReadsAtMultiplesOfTheInterval) {
  Start();
  EXPECT_EQ(schedule_->NextDueNs(), 11 * kNsPerSecond);
  schedule_->RunDue(10'900 * kNsPerMs);
  EXPECT_TRUE(script.read_at_ns.empty());
  RunUntil(14 * kNsPerSecond);
  EXPECT_EQ(ReadAtMs(), (std::vector<int64_t>{11000, 12000, 13000, 14000}));
  const auto samples = Records<model::Samples>();
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_EQ(samples[0].t_ns, 11 * kNsPerSecond);
  EXPECT_EQ(Value(samples[0], "one"), 1.0);
  EXPECT_EQ(Value(samples[0], "source_success"), 1.0);
  EXPECT_EQ(Value(samples[0], "lag_s"), 0.0);
}

TEST_F(ScheduleTest, ALateTickIsReadOnceAndSaysWhen) {
  Start();
  schedule_->RunDue(11'004 * kNsPerMs);  // within 1 % of the interval
  schedule_->RunDue(14'600 * kNsPerMs);  // three were missed
  schedule_->RunDue(14'700 * kNsPerMs);  // nothing is due
  const auto samples = Records<model::Samples>();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].t_ns, 11 * kNsPerSecond);
  EXPECT_EQ(samples[1].t_ns, 14'600 * kNsPerMs);
  EXPECT_DOUBLE_EQ(Value(samples[1], "lag_s").value(), 2.6);
  EXPECT_EQ(schedule_->NextDueNs(), 15 * kNsPerSecond);
}

TEST_F(ScheduleTest, SlowTiersAreReadFirstAtOnceThenInTheirPeriod) {
  Start(Tier::kSlow);
  RunUntil(32 * kNsPerSecond);
  EXPECT_EQ(ReadAtMs(), (std::vector<int64_t>{11000, 20000, 30000}));
}

TEST_F(ScheduleTest, ReadsAllAgainWhenAskedTooSoonButOnlyOnce) {
  Start(Tier::kSlow);
  schedule_->RunDue(11 * kNsPerSecond);
  schedule_->RunAtEpoch(12'345 * kNsPerMs);
  schedule_->RunAtEpoch(12'346 * kNsPerMs);  // the next epoch begins right after the end of one
  schedule_->RunAtEpoch(12'350 * kNsPerMs);
  EXPECT_EQ(schedule_->NextDueNs(), 12'365 * kNsPerMs);
  schedule_->RunDue(12'365 * kNsPerMs);
  schedule_->RunAtEpoch(12'400 * kNsPerMs);
  std::vector<int64_t> read_at_ms;
  for (const model::Samples& samples : Records<model::Samples>()) {
    read_at_ms.push_back(samples.t_ns / kNsPerMs);
  }
  EXPECT_EQ(read_at_ms, (std::vector<int64_t>{11000, 12345, 12365, 12400}));
}

TEST_F(ScheduleTest, ASourceThatSaysNothingOfEpochsIsNotReadAtThem) {
  Start(Tier::kRare, 10'300 * kNsPerMs, false);
  RunUntil(11 * kNsPerSecond);
  schedule_->RunAtEpoch(12'345 * kNsPerMs);
  EXPECT_EQ(ReadAtMs(), std::vector<int64_t>{11000});
  schedule_->RunAllNow(12'346 * kNsPerMs);
  EXPECT_EQ(script.read_at_ns.size(), 2U);
  EXPECT_EQ(schedule_->NextDueNs(), 60 * kNsPerSecond);
}

TEST_F(ScheduleTest, ACostlySourceIsReadLessAndComesBack) {
  SetBudget(0.01);
  script.cost_ns = 15 * kNsPerMs;  // 1.5 % of a second
  Start();
  RunUntil(14 * kNsPerSecond);
  ASSERT_EQ(Events(), std::vector<std::string>{"slowed"});
  const auto event = Records<model::Event>()[0];
  EXPECT_EQ(event.Number("period_s"), 2.0);
  EXPECT_EQ(event.Number("usual_period_s"), 1.0);
  EXPECT_DOUBLE_EQ(event.Number("cost_s").value(), 0.015);
  EXPECT_EQ(event.Text("reason"),
            "one reading takes 15.0 ms of CPU time, and the recorder has 1.00 % of a core");
  EXPECT_EQ(event.name, "fake");
  script.read_at_ns.clear();
  RunUntil(20 * kNsPerSecond);
  EXPECT_EQ(ReadAtMs(), (std::vector<int64_t>{16000, 18000, 20000}));
  script.cost_ns = kNsPerMs;
  RunUntil(80 * kNsPerSecond);
  EXPECT_EQ(Events(), (std::vector<std::string>{"slowed", "restored"}));
}

TEST_F(ScheduleTest, ALongerPeriodIsKnownBeforeAnyMeanCouldTakeItForAGap) {
  SetBudget(0.001);
  script.cost_ns = 15 * kNsPerMs;
  Start();
  RunUntil(60 * kNsPerSecond);
  int64_t period_ns = 0, read_ns = 0;
  int raised = 0;
  for (const model::Record& record : bench_.sink.records) {
    if (const auto* def = std::get_if<model::SeriesDef>(&record)) {
      if (def->metric.field != "one") continue;
      raised += period_ns != 0 ? 1 : 0;
      period_ns = def->period_ns;
    } else if (const auto* samples = std::get_if<model::Samples>(&record)) {
      if (!Value(*samples, "one")) continue;
      EXPECT_LE(read_ns == 0 ? 0 : samples->t_ns - read_ns, period_ns);
      read_ns = samples->t_ns;
    }
  }
  EXPECT_EQ(raised, 1);
  EXPECT_EQ(period_ns, 20 * kNsPerSecond);
}

TEST_F(ScheduleTest, PartsTakeTurnsOnceTheyAreReadLessThanEachTick) {
  SetBudget(0.001);
  script.parts = 8;
  script.cost_ns = 8 * kNsPerMs;
  Start();
  RunUntil(30 * kNsPerSecond);
  EXPECT_THAT(Events(), testing::ElementsAre("slowed"));
  EXPECT_EQ(Records<model::Event>()[0].Number("period_s"), 10.0);
  script.parts_read.clear();
  script.read_at_ns.clear();
  RunUntil(40 * kNsPerSecond);
  EXPECT_EQ(script.read_at_ns.size(), 8U) << "two of ten ticks read nothing";
  std::vector<size_t> all;
  for (const auto& parts : script.parts_read) all.insert(all.end(), parts.begin(), parts.end());
  EXPECT_THAT(all, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(ScheduleTest, AVitalSourceKeepsTheIntervalAndTheBudgetIsSaidToBeExceeded) {
  SetBudget(0.001, true);
  script.cost_ns = 5 * kNsPerMs;
  Start();
  RunUntil(60 * kNsPerSecond);
  EXPECT_EQ(script.read_at_ns.size(), 50U);
  EXPECT_EQ(Events(), std::vector<std::string>{"exceeded"});
  EXPECT_EQ(Records<model::Event>()[0].name, "budget");
}

TEST_F(ScheduleTest, ASourceOfNoUseWhenSlowerIsOffWithItsReason) {
  SetBudget(0.001);
  longest_ns_ = 0;
  script.cost_ns = 5 * kNsPerMs;
  Start();
  RunUntil(100 * kNsPerSecond);
  EXPECT_EQ(Events(), std::vector<std::string>{"off"});
  EXPECT_LE(script.read_at_ns.size(), 4U);
  ASSERT_EQ(Records<model::SeriesState>().size(), 2U);
  EXPECT_EQ(
      Records<model::SeriesState>()[0].detail,
      "not read: one reading takes 5.0 ms of CPU time, and the recorder has 0.10 % of a core");
}

TEST_F(ScheduleTest, ManyEpochsCostNoMoreThanTheBudget) {
  SetBudget(0.01);
  script.cost_ns = 10 * kNsPerMs;
  Start(Tier::kRare);
  RunUntil(11 * kNsPerSecond);
  script.read_at_ns.clear();
  for (int64_t t_ns = 12 * kNsPerSecond; t_ns < 612 * kNsPerSecond; t_ns += kNsPerSecond / 2) {
    RunUntil(t_ns);
    clock_ns = std::max(clock_ns, t_ns);
    schedule_->RunAtEpoch(clock_ns);
  }
  // Half of 1 % of 600 s is 300 readings; a minute was saved up, and each minute has its own one.
  EXPECT_GE(script.read_at_ns.size(), 290U);
  EXPECT_LE(script.read_at_ns.size(), 375U);
  const size_t read = script.read_at_ns.size();
  schedule_->RunAtEnd(clock_ns);
  EXPECT_EQ(script.read_at_ns.size(), read + 1) << "the last reading of a run is made in any case";
}

TEST_F(ScheduleTest, OneLongReadingDoesNotSlowASource) {
  SetBudget(0.01);
  Start();
  RunUntil(20 * kNsPerSecond);
  script.cost_ns = 400 * kNsPerMs;
  RunUntil(21 * kNsPerSecond);
  script.cost_ns = 0;
  RunUntil(60 * kNsPerSecond);
  EXPECT_TRUE(Events().empty());
}

TEST_F(ScheduleTest, WithoutABudgetNothingIsReadLess) {
  script.cost_ns = 100 * kNsPerMs;
  Start();
  RunUntil(60 * kNsPerSecond);
  EXPECT_EQ(script.read_at_ns.size(), 50U);
  EXPECT_TRUE(Events().empty());
}

TEST_F(ScheduleTest, AFailingSourceIsTriedWithBackOffAndToldOnce) {
  Start();
  RunUntil(11 * kNsPerSecond);
  script.read_at_ns.clear();
  script.sample_error = "device lost";
  RunUntil(300 * kNsPerSecond);
  EXPECT_EQ(ReadAtMs(), (std::vector<int64_t>{12000, 13000, 15000, 19000, 27000, 43000, 75000,
                                              135000, 195000, 255000}));
  EXPECT_EQ(Events(), std::vector<std::string>{"failing"});
  EXPECT_GT(script.made, 1);  // made anew after three failures
  const auto samples = Records<model::Samples>();
  EXPECT_FALSE(Value(samples.back(), "one"));
  EXPECT_EQ(Value(samples.back(), "source_success"), 0.0);
  ASSERT_EQ(Records<model::SeriesState>().size(), 2U);
  EXPECT_EQ(Records<model::SeriesState>()[0].condition, model::SeriesCondition::kError);
}

TEST_F(ScheduleTest, AfterAFailureOnlySeriesWithValuesAreWellAgain) {
  Start();
  RunUntil(11 * kNsPerSecond);
  script.sample_error = "device lost";
  RunUntil(12 * kNsPerSecond);
  script.sample_error.clear();
  script.with_second = false;
  RunUntil(15 * kNsPerSecond);
  EXPECT_EQ(Events(), (std::vector<std::string>{"failing", "ok"}));
  const auto states = Records<model::SeriesState>();
  ASSERT_EQ(states.size(), 3U);
  EXPECT_EQ(states[2].condition, model::SeriesCondition::kOk);
  EXPECT_EQ(bench_.registry.series(states[2].series).metric.field, "one");
  EXPECT_EQ(ReadAtMs(), (std::vector<int64_t>{11000, 12000, 13000, 14000, 15000}));
}

TEST_F(ScheduleTest, ASourceThatCannotBeMadeIsToldOnceAndTriedAgain) {
  script.make_fails = true;
  Start();
  RunUntil(30 * kNsPerSecond);
  EXPECT_EQ(Events(), std::vector<std::string>{"unavailable"});
  EXPECT_EQ(Records<model::Event>()[0].Text("reason"), "no such device");
  EXPECT_EQ(script.made, 5);  // at 10.3, 11.3, 13.3, 17.3, 25.3
  script.make_fails = false;
  RunUntil(43 * kNsPerSecond);
  EXPECT_EQ(Events(), (std::vector<std::string>{"unavailable", "ok"}));
  for (const auto& samples : Records<model::Samples>()) EXPECT_EQ(Value(samples, "lag_s"), 0.0);
  EXPECT_EQ(ReadAtMs(), (std::vector<int64_t>{41300, 42000, 43000}));
}

TEST_F(ScheduleTest, ValuesThatAreNoNumbersAreCountedAsLoss) {
  Start();
  script.value = std::numeric_limits<double>::quiet_NaN();
  RunUntil(11 * kNsPerSecond);
  const auto samples = Records<model::Samples>();
  EXPECT_FALSE(Value(samples[0], "one"));
  EXPECT_EQ(Value(samples[0], "two"), 2.0);
  ASSERT_EQ(Records<model::Loss>().size(), 1U);
  EXPECT_EQ(Records<model::Loss>()[0].kind, "value.not_finite");
}

TEST_F(ScheduleTest, WithoutSourcesNothingIsDue) {
  bench_.env.monotonic_ns = &ClockNs;
  const auto schedule = Schedule::Make(bench_.context(), {}, "sampler");
  EXPECT_EQ(schedule->NextDueNs(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(bench_.registry.entities().back().name, "sampler");
}

}  // namespace
}  // namespace epochmeter::collect
